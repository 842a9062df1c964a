//! Reads CSV with a header, and writes some of its rows with one more column.

use std::collections::BTreeMap;

use csv::{Reader, ReaderBuilder, StringRecord, WriterBuilder};
use serde_json::Value;

use super::Parsed;
use super::fields::{FIELDS, Fields, STATUS, is_foreign, line, shorten};
use crate::error::{CliError, Result};
use crate::suggest::similar;
use crate::time::plural;

/// How quotes are written.
pub(super) const QUOTES: &str = "put the value in quotes, and write each quote inside it as `\"\"`";
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
    let mut header = StringRecord::new();
    let mut parsed = Parsed::default();
    let Some((start, end)) = next(&mut reader, text, &mut header)? else {
        return Ok(parsed);
    };
    let place = format!("line {}", line(text.as_bytes(), start));
    if let Some(problem) = misquoted(&text[start..end], delimiter) {
        return Err(CliError::input(format!("{name} {place}: {problem}")).hint(QUOTES));
    }
    parsed.ignored = check_header(name, &header, &place, &text[start..end])?;
    let mut record = StringRecord::new();
    while let Some((start, end)) = next(&mut reader, text, &mut record)? {
        let pet = if let Some(problem) = misquoted(&text[start..end], delimiter) {
            parsed.is_misquoted = true;
            Err(problem)
        } else if record.len() == header.len() {
            Fields::Csv(&header, &record).pet()
        } else {
            let values = plural(record.len(), "value", "values");
            Err(format!("{values}; the header has {}", header.len()))
        };
        parsed.rows.push((start, pet));
    }
    Ok(parsed)
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

/// Returns what is wrong with the quotes of a record. The reader accepts any, and may take several
/// rows for one. A quote inside a value without quotes is part of it.
fn misquoted(record: &str, delimiter: u8) -> Option<String> {
    let mut rest = record.trim_end_matches(['\r', '\n']);
    while let Some(start) = rest.chars().next() {
        if start == '"' {
            rest = &rest[1..];
            // A pair of quotes is one quote of the value.
            loop {
                let Some((_, after)) = rest.split_once('"') else {
                    return Some("a quote is never closed".to_owned());
                };
                rest = after;
                match rest.strip_prefix('"') {
                    Some(after_pair) => rest = after_pair,
                    None => break,
                }
            }
            if !rest.is_empty() && !rest.starts_with(char::from(delimiter)) {
                let text = shorten(rest.lines().next().unwrap_or_default());
                return Some(format!("`{text}` follows a closing quote"));
            }
        }
        (_, rest) = rest.split_once(char::from(delimiter))?;
    }
    None
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
        // A separator at the end of each line makes a column without a name.
        foreign.retain(|column| !column.is_empty());
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
