//! The output formats. All text is escaped for terminals. In JSON and tab-separated values, the
//! escapes preserve the text.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use anstyle::Style;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::escape::{self, to_text};
use crate::screen::{BLUE, DIM, GREEN, MAGENTA, PLAIN, Screen, YELLOW};

/// The format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OutputFormat {
    /// Aligned columns for people
    Table,
    /// One JSON document
    Json,
    /// A JSON document on each line
    #[value(alias = "jsonl")]
    Ndjson,
    /// Comma-separated values with a header (RFC 4180)
    Csv,
    /// Tab-separated values without a header
    Tsv,
}

impl OutputFormat {
    /// Returns the format that the extension of a file names, if any.
    pub(crate) fn of_file(file: &Path) -> Option<Self> {
        let format = Self::from_str(file.extension()?.to_str()?, false).ok()?;
        (format != Self::Table).then_some(format)
    }
}

/// Writes a document, on one line, or indented at a depth.
pub(super) fn json(
    value: &Value,
    depth: Option<usize>,
    screen: &Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let new_line = |depth: Option<usize>, out: &mut dyn Write| match depth {
        Some(depth) => write!(out, "\n{}", "  ".repeat(depth)),
        None => Ok(()),
    };
    let entries: Vec<(Option<&str>, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, inner)| (Some(&**name), inner))
            .collect(),
        Value::Array(items) => items.iter().map(|inner| (None, inner)).collect(),
        _ => Vec::new(),
    };
    if entries.is_empty() {
        return out.write_all(screen.paint(style(value), to_text(value)).as_bytes());
    }
    let (open, close) = if value.is_object() {
        ("{", "}")
    } else {
        ("[", "]")
    };
    let deeper = depth.map(|depth| depth + 1);
    for (at, (name, inner)) in entries.into_iter().enumerate() {
        out.write_all(if at == 0 { open } else { "," }.as_bytes())?;
        new_line(deeper, out)?;
        if let Some(name) = name {
            let name = screen.paint(BLUE, to_text(&name.into()));
            write!(out, "{name}:{}", if depth.is_some() { " " } else { "" })?;
        }
        json(inner, deeper, screen, out)?;
    }
    new_line(depth, out)?;
    out.write_all(close.as_bytes())
}

fn style(value: &Value) -> Style {
    match value {
        Value::String(_) => GREEN,
        Value::Number(_) => YELLOW,
        Value::Bool(_) => MAGENTA,
        Value::Null => DIM,
        Value::Object(_) | Value::Array(_) => PLAIN,
    }
}

/// Writes values like `jq --raw-output`: strings without quotes, other values as JSON.
pub(super) fn raw(values: &[Value], screen: &Screen, out: &mut dyn Write) -> io::Result<()> {
    for value in values {
        match value {
            Value::String(text) => out.write_all(on(screen, text).as_bytes())?,
            other => json(other, screen.is_terminal().then_some(0), screen, out)?,
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Returns text unchanged for a file, and escaped for a terminal.
fn on<'t>(screen: &Screen, text: &'t str) -> Cow<'t, str> {
    if screen.is_terminal() {
        escape::lines(text)
    } else {
        Cow::Borrowed(text)
    }
}

/// Writes a record as tab-separated values. Also escapes tabs, line breaks and backslashes.
pub(super) fn tsv(cells: &[Cow<'_, str>], out: &mut dyn Write) -> io::Result<()> {
    let cells: Vec<_> = cells.iter().map(|cell| escape::line(cell)).collect();
    writeln!(out, "{}", cells.join("\t"))
}

/// Writes a record as comma-separated values, with quotes if needed.
pub(super) fn csv<'c>(
    cells: impl IntoIterator<Item = Cow<'c, str>>,
    screen: &Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(out);
    writer.write_record(cells.into_iter().map(|cell| on(screen, &cell).into_owned()))?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(document: &Value, depth: Option<usize>) -> String {
        let screen = Screen::file();
        let mut text = Vec::new();
        json(document, depth, &screen, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn escapes_harmful_characters_and_keeps_the_document_equal() {
        let name = "a\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{200b}\u{e0041}\"\\\n é";
        let document = serde_json::json!({ "name": name, "n": [1, 2.5, null, {}, []] });
        for depth in [None, Some(0)] {
            let text = written(&document, depth);
            assert!(
                !text.contains(|c| escape::is_harmful(c) && c != '\n'),
                "{text}"
            );
            assert!(
                text.contains(r#"\u009b\u007f\u202e\u200b\udb40\udc41\"\\\n é"#),
                "{text}"
            );
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
        }
    }

    #[test]
    fn lays_documents_out_as_other_programs_do() {
        let document = serde_json::json!([{ "a": [1, {}], "b": {} }, []]);
        let pretty = serde_json::to_string_pretty(&document).unwrap();
        assert_eq!(written(&document, Some(0)), pretty);
    }
}
