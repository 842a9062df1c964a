//! The formats by name, and how each writes a record. Everything that could act on a terminal is
//! escaped: in JSON and tab-separated values in a way that reads back as what was there.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use anstyle::Style;
use clap::ValueEnum;
use serde_json::Value;

use super::column::{Column, cell};
use crate::error::{CliError, Invalid, Kind};
use crate::escape::{self, to_text};
use crate::screen::{BLUE, DIM, GREEN, MAGENTA, Screen, YELLOW};

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Aligned columns for people
    Table,
    /// One JSON document
    Json,
    /// A JSON document on each line
    Ndjson,
    /// Comma-separated values with a header (RFC 4180)
    Csv,
    /// Tab-separated values without a header
    Tsv,
    /// The identifiers alone, one on each line
    Id,
}

impl FromStr for OutputFormat {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Invalid::unless_one_of(text)
    }
}

impl fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

/// Writes a document: on one line, or laid out at a depth.
pub(super) fn json(
    value: &Value,
    depth: Option<usize>,
    color: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let scalar = |style: Style, out: &mut dyn Write| match color {
        true => write!(out, "{style}{}{style:#}", to_text(value)),
        false => out.write_all(to_text(value).as_bytes()),
    };
    let line = |depth: Option<usize>, out: &mut dyn Write| match depth {
        Some(depth) => write!(out, "\n{}", "  ".repeat(depth)),
        None => Ok(()),
    };
    let deeper = depth.map(|depth| depth + 1);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (at, (name, value)) in fields.iter().enumerate() {
                out.write_all(if at == 0 { b"{" } else { b"," })?;
                line(deeper, out)?;
                let name = to_text(&Value::from(name.as_str()));
                let space = if depth.is_some() { " " } else { "" };
                match color {
                    true => write!(out, "{BLUE}{name}{BLUE:#}:{space}")?,
                    false => write!(out, "{name}:{space}")?,
                }
                json(value, deeper, color, out)?;
            }
            line(depth, out)?;
            out.write_all(b"}")
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                out.write_all(if at == 0 { b"[" } else { b"," })?;
                line(deeper, out)?;
                json(item, deeper, color, out)?;
            }
            line(depth, out)?;
            out.write_all(b"]")
        }
        Value::Object(_) | Value::Array(_) => out.write_all(to_text(value).as_bytes()),
        Value::String(_) => scalar(GREEN, out),
        Value::Number(_) => scalar(YELLOW, out),
        Value::Bool(_) => scalar(MAGENTA, out),
        Value::Null => scalar(DIM, out),
    }
}

/// Writes values as `jq --raw-output` does: text as it is, all else as JSON.
pub(super) fn raw(values: &[Value], screen: &Screen, out: &mut dyn Write) -> io::Result<()> {
    for value in values {
        match value {
            Value::String(text) if screen.is_terminal => {
                out.write_all(escape::lines(text).as_bytes())?;
            }
            Value::String(text) => out.write_all(text.as_bytes())?,
            other => json(other, screen.is_terminal.then_some(0), screen.color, out)?,
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes the identifier of a record.
pub(super) fn id(record: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let id = match record {
        Value::Object(fields) => fields.get("id"),
        other => Some(other),
    };
    let Some(id) = id else {
        return Err(CliError::new(Kind::Usage, "the result has no field `id`")
            .hint("choose another format with `-o`"));
    };
    Ok(writeln!(out, "{}", escape::line(&cell(Some(id))))?)
}

/// Writes a record as tab-separated values: a tab, a line break and a backslash are escaped too.
pub(super) fn tsv(cells: &[Cow<'_, str>], out: &mut dyn Write) -> io::Result<()> {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.write_all(b"\t")?;
        }
        out.write_all(escape::line(cell).as_bytes())?;
    }
    out.write_all(b"\n")
}

/// Writes a record as comma-separated values. In a file each value is just what it was, quoted
/// where it must be; on a terminal, what could act on it is escaped.
pub(super) fn csv(
    cells: Vec<Cow<'_, str>>,
    screen: &Screen,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let shown = cells.into_iter().map(|cell| match screen.is_terminal {
        true => escape::lines(&cell).into_owned(),
        false => cell.into_owned(),
    });
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(out);
    writer.write_record(shown).map_err(io::Error::from)?;
    Ok(writer.flush()?)
}

pub(super) fn csv_header(
    columns: &[Column],
    screen: &Screen,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    csv(columns.iter().map(|column| Cow::Borrowed(column.name())).collect(), screen, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_json_lets_through_and_stays_the_same_document() {
        let name = "a\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{200b}\u{e0041}\"\\\n é";
        let document = serde_json::json!({ "name": name, "n": [1, 2.5, null, {}, []] });
        for depth in [None, Some(0)] {
            let mut text = Vec::new();
            json(&document, depth, false, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(!text.contains(|c| escape::is_harmful(c) && c != '\n'), "{text}");
            assert!(text.contains(r#"\u009b\u007f\u202e\u200b\udb40\udc41\"\\\n é"#), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
        }
    }

    #[test]
    fn lays_documents_out_as_other_programs_do() {
        let document = serde_json::json!([{ "a": [1, {}], "b": {} }, []]);
        let mut text = Vec::new();
        json(&document, Some(0), false, &mut text).unwrap();
        assert_eq!(text, serde_json::to_vec_pretty(&document).unwrap());
    }
}
