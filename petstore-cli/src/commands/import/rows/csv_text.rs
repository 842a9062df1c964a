//! Reads CSV with a header, and writes some of its rows with one more column.

use std::collections::BTreeMap;

use csv::{Reader, ReaderBuilder, StringRecord, WriterBuilder};
use petstore_client::NewPet;
use serde_json::Value;

use super::fields::{FIELDS, Fields, STATUS, is_foreign, line, shorten};
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

/// Reads the rows of an input, each with the byte at which it starts. Adds the columns that are
/// ignored.
pub(super) fn read(
    name: &str,
    text: &str,
    delimiter: u8,
    ignored: &mut Vec<String>,
) -> Result<Vec<(usize, Result<NewPet, String>)>> {
    let mut reader = reader(text, delimiter);
    let mut header = StringRecord::new();
    let mut rows = Vec::new();
    let Some((start, end)) = next(&mut reader, text, &mut header)? else {
        return Ok(rows);
    };
    let place = format!("line {}", line(text.as_bytes(), start));
    *ignored = check_header(name, &header, &place, &text[start..end])?;
    let mut record = StringRecord::new();
    while let Some((start, end)) = next(&mut reader, text, &mut record)? {
        if end == text.len() && has_open_quote(&text[start..end], delimiter) {
            let line = line(text.as_bytes(), start);
            let problem = format!("{name} line {line}: a quote is never closed");
            let hint = "close it; a quote inside a value is written `\"\"`";
            return Err(CliError::input(problem).hint(hint));
        }
        let pet = if record.len() == header.len() {
            Fields::Csv(&header, &record).pet()
        } else {
            let values = plural(record.len(), "value", "values");
            Err(format!("{values}; the header has {}", header.len()))
        };
        rows.push((start, pet));
    }
    Ok(rows)
}

/// Returns the rows that have a value, with this value in a last column.
pub(super) fn with_column(
    text: &str,
    delimiter: u8,
    column: &str,
    values: &BTreeMap<usize, Value>,
) -> csv::Result<Vec<u8>> {
    let mut records = reader(text, delimiter).into_records();
    let header = records.next().transpose()?.unwrap_or_default();
    let mut builder = WriterBuilder::new();
    builder.delimiter(delimiter).flexible(true);
    let mut writer = builder.from_writer(Vec::new());
    writer.write_record(with_last(&header, &header, column, column))?;
    for (row, record) in records.enumerate() {
        let value = match values.get(&row) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => continue,
        };
        writer.write_record(with_last(&record?, &header, column, &value))?;
    }
    writer
        .into_inner()
        .map_err(|error| error.into_error().into())
}

/// Returns the cells of a record and a last one. The input may have this column already.
fn with_last<'c>(
    record: &'c StringRecord,
    header: &StringRecord,
    column: &str,
    last: &'c str,
) -> Vec<&'c str> {
    let mut cells = Vec::new();
    for cell in 0..record.len().max(header.len()) {
        if header.get(cell) != Some(column) {
            cells.push(record.get(cell).unwrap_or_default());
        }
    }
    cells.push(last);
    cells
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
        let times = header.iter().filter(|column| *column == field).count();
        let mistyped = similar(field, foreign.iter().copied());
        match (times, mistyped) {
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
        let text = shorten(text.trim_end());
        let problem = format!("{name} has no header: {place} is `{text}`");
        let hint = format!("put `{}` above it", FIELDS.join(","));
        return Err(CliError::input(problem).hint(hint));
    }
    let problem = format!("{name} cannot be read: its header, {place}, is wrong");
    let hint = format!("name the columns {}", FIELDS.join(", "));
    Err(CliError::input(problem).list(problems).hint(hint))
}
