//! Reads CSV with a header, and writes some of its rows with one more column.

use csv::{Reader, ReaderBuilder, StringRecord, WriterBuilder};
use serde_json::Value;

use super::fields::{FIELDS, Fields, STATUS, is_foreign};
use super::row::{Fault, Lines, Parsed, Row, shorten};
use crate::error::{CliError, Result};
use crate::suggest::similar;
use crate::time::plural;

/// Separators that a header may have.
const SEPARATORS: [u8; 4] = [b'|', b';', b'\t', b','];

/// Returns the separator that a header has most often; without any, a comma.
pub(super) fn separator(header: &str) -> u8 {
    let times = |separator: &u8| header.bytes().filter(|byte| byte == separator).count();
    SEPARATORS.into_iter().max_by_key(times).unwrap_or(b',')
}

/// Reads the rows of an input.
pub(super) fn read(name: &str, text: &str, delimiter: u8) -> Result<Parsed> {
    let mut reader = reader(text, delimiter);
    let lines = Lines::of(text);
    let mut header = StringRecord::new();
    let mut parsed = Parsed::default();
    let Some((start, end)) = next(&mut reader, text, &mut header)? else {
        return Ok(parsed);
    };
    let place = format!("line {}", lines.number(start));
    parsed.ignored = check_header(name, &header, &place, &text[start..end])?;
    let mut record = StringRecord::new();
    while let Some((start, end)) = next(&mut reader, text, &mut record)? {
        let line = lines.number(start);
        if end == text.len() && has_open_quote(&text[start..end], delimiter) {
            let problem = format!("{name} line {line}: a quote is never closed");
            let hint = "close it; a quote inside a value is written `\"\"`";
            return Err(CliError::input(problem).hint(hint));
        }
        let pet = match record.len() == header.len() {
            true => Fields::Csv(&header, &record).pet(),
            false => {
                let values = plural(record.len(), "value", "values");
                let text = format!("{values}; the header has {}", header.len());
                Err(vec![Fault::new(text)])
            }
        };
        parsed.rows.push(Row::new(line, start..end, pet));
    }
    Ok(parsed)
}

/// Returns rows of an input with a value in one more column.
pub(super) fn with_column<'t>(
    text: &str,
    delimiter: u8,
    column: &str,
    rows: impl Iterator<Item = (&'t str, &'t Value)>,
) -> csv::Result<Vec<u8>> {
    let mut header = StringRecord::new();
    reader(text, delimiter).read_record(&mut header)?;
    let mut builder = WriterBuilder::new();
    builder.delimiter(delimiter).flexible(true);
    let mut writer = builder.from_writer(Vec::new());
    // The input may be such a file itself.
    let others = |record: &StringRecord| -> Vec<String> {
        let cells = record.iter().enumerate();
        let others = cells.filter(|(cell, _)| header.get(*cell) != Some(column));
        others.map(|(_, text)| text.to_owned()).collect()
    };
    let mut names = others(&header);
    names.push(column.to_owned());
    writer.write_record(&names)?;
    for (row, value) in rows {
        let mut record = StringRecord::new();
        reader(row, delimiter).read_record(&mut record)?;
        while record.len() < header.len() {
            record.push_field("");
        }
        let mut cells = others(&record);
        cells.push(match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        });
        writer.write_record(&cells)?;
    }
    writer
        .into_inner()
        .map_err(|error| error.into_error().into())
}

fn reader(text: &str, delimiter: u8) -> Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(false);
    builder.from_reader(text.as_bytes())
}

/// Reads the next record. Returns where it starts and ends.
fn next(
    reader: &mut Reader<&[u8]>,
    text: &str,
    record: &mut StringRecord,
) -> Result<Option<(usize, usize)>> {
    let at = |position: &csv::Position| usize::try_from(position.byte()).unwrap_or(text.len());
    let before = at(reader.position());
    if !reader.read_record(record).map_err(CliError::internal)? {
        return Ok(None);
    }
    // Empty lines, which the reader skips, may come first.
    let empty = text[before..]
        .bytes()
        .take_while(|byte| b"\r\n".contains(byte));
    Ok(Some((before + empty.count(), at(reader.position()))))
}

/// Returns whether the last record begins a quoted value that it does not end.
fn has_open_quote(raw: &str, delimiter: u8) -> bool {
    let begins_quoted =
        raw.starts_with('"') || raw.contains(&format!("{}\"", char::from(delimiter)));
    begins_quoted && raw.matches('"').count() % 2 == 1
}

/// Returns the columns that are ignored. Fails with all that is wrong if a column is missing, unclear
/// or mistyped.
fn check_header(name: &str, header: &StringRecord, place: &str, text: &str) -> Result<Vec<String>> {
    let mut foreign: Vec<&str> = header.iter().filter(|column| is_foreign(column)).collect();
    let mut problems = Vec::new();
    for field in FIELDS {
        let mistyped = similar(field, foreign.iter().copied());
        match (
            header.iter().filter(|column| *column == field).count(),
            mistyped,
        ) {
            (1, _) => {}
            (0, Some(column)) => {
                foreign.retain(|other| *other != column);
                let column = shorten(column);
                problems.push(format!(
                    "unknown column `{column}`; did you mean `{field}`?"
                ));
            }
            (0, None) if field == STATUS => {}
            (0, None) => problems.push(format!("no column `{field}`")),
            (times, _) => problems.push(format!("{times} columns `{field}`")),
        }
    }
    if problems.is_empty() {
        return Ok(foreign.into_iter().map(str::to_owned).collect());
    }
    if foreign.len() == header.len() {
        let problem = format!(
            "{name} has no header: {place} is `{}`",
            shorten(text.trim_end())
        );
        let hint = format!("put `{}` above it", FIELDS.join(","));
        return Err(CliError::input(problem).hint(hint));
    }
    let problem = format!("{name} cannot be read: its header, {place}, is wrong");
    let hint = format!("name the columns {}", FIELDS.join(", "));
    Err(CliError::input(problem).list(problems).hint(hint))
}
