//! The rows of an input: CSV with a header, or JSON objects, one per line or in an array. All that is
//! wrong is found before anything is sent.

mod csv_text;
mod fields;
mod json_text;
mod row;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(super) use self::row::{Digest, Row};
use self::row::{Fault, Parsed};
use crate::error::{CliError, Failure, Kind, Result};

/// The maximum number of listed problems.
const MAX_LISTED: usize = 20;

/// The rows of an input, some of which may be invalid.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The name of the input in messages.
    name: String,
    text: String,
    /// The separator of CSV; `None` for JSON.
    delimiter: Option<u8>,
    rows: Vec<Row>,
    /// Columns or fields that are ignored.
    ignored: Vec<String>,
}

impl Rows {
    /// Reads rows. If no separator is given, the content decides.
    pub(crate) fn read(name: &str, bytes: Vec<u8>, delimiter: Option<u8>) -> Result<Self> {
        let mut text = String::from_utf8(bytes).map_err(|error| not_utf8(name, &error))?;
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let first_line = text.trim_start().lines().next().unwrap_or_default();
        let delimiter = match delimiter {
            None if first_line.starts_with(['{', '[']) => None,
            None => Some(csv_text::separator(first_line)),
            given => given,
        };
        let Parsed { rows, ignored } = match delimiter {
            Some(delimiter) => csv_text::read(name, &text, delimiter)?,
            None => json_text::read(name, &text)?,
        };
        Ok(Self {
            name: name.to_owned(),
            text,
            delimiter,
            rows,
            ignored,
        })
    }

    /// Returns the name in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn all(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the columns or fields that are ignored.
    pub(super) fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Returns the number of invalid rows.
    pub(super) fn invalid(&self) -> usize {
        self.rows.iter().filter(|row| row.pet().is_none()).count()
    }

    /// Returns where a row stands: its line; its number if it shares a line with another row.
    pub(super) fn place(&self, row: usize) -> String {
        let (what, number) = self.numbered(row);
        format!("{what} {number}")
    }

    /// Returns where a row stands, for programs: `{"line": 3}`.
    pub(super) fn place_json(&self, row: usize) -> Value {
        let (what, number) = self.numbered(row);
        json!({ what: number })
    }

    fn numbered(&self, row: usize) -> (&'static str, usize) {
        let line = |row: usize| self.rows.get(row).map(Row::line);
        let before = row.checked_sub(1).and_then(line);
        match line(row) {
            Some(own) if before != Some(own) && line(row + 1) != Some(own) => ("line", own),
            _ => ("row", row + 1),
        }
    }

    /// Fails if a row is invalid, with all that is wrong.
    pub(crate) fn check(&self) -> Result<()> {
        let rows = match self.invalid() {
            0 => return Ok(()),
            1 => format!("1 row of {} is", self.name),
            rows => format!("{rows} rows of {} are", self.name),
        };
        let mut failure = Failure::new(Kind::Input, format!("{rows} invalid; nothing was sent"));
        failure.list = self.problems();
        failure.fields.insert("rows".to_owned(), self.faults());
        Err(failure
            .hint("correct the input and run the command again")
            .into())
    }

    /// Returns all that is wrong, for programs.
    pub(super) fn faults(&self) -> Value {
        let mut list = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            for fault in row.faults() {
                let mut object = self.place_json(number);
                if let Some(field) = fault.field() {
                    object["field"] = json!(field);
                }
                object["problem"] = json!(fault.text());
                list.push(object);
            }
        }
        list.into()
    }

    /// Returns a line for each problem, up to a number.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut list = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            for fault in row.faults() {
                let joint = if fault.field().is_some() { "," } else { ":" };
                list.push(format!("{}{joint} {fault}", self.place(number)));
            }
        }
        let more = list.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            list.truncate(MAX_LISTED);
            list.push(format!("{more} more; --error-format json lists all"));
        }
        list
    }

    /// Returns what is wrong with each invalid row.
    pub(super) fn reasons(&self) -> BTreeMap<usize, Value> {
        let mut reasons = BTreeMap::new();
        for (number, row) in self.rows.iter().enumerate() {
            if row.pet().is_none() {
                let faults: Vec<_> = row.faults().iter().map(Fault::to_string).collect();
                reasons.insert(number, faults.join("; ").into());
            }
        }
        reasons
    }

    /// Returns the rows that have a value, with this value in one more column, so that they can be
    /// corrected and imported. The format is CSV if the input is CSV, and else one JSON object per
    /// line.
    pub(super) fn with_column(
        &self,
        column: &str,
        values: &BTreeMap<usize, Value>,
    ) -> Result<Vec<u8>> {
        let rows = values
            .iter()
            .map(|(row, value)| (self.rows[*row].text(&self.text), value));
        match self.delimiter {
            None => Ok(json_text::with_column(column, rows).into_bytes()),
            Some(delimiter) => csv_text::with_column(&self.text, delimiter, column, rows)
                .map_err(CliError::internal),
        }
    }
}

fn not_utf8(name: &str, error: &std::string::FromUtf8Error) -> CliError {
    let bytes = error.as_bytes();
    let encoding = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "utf-16",
        _ if bytes.contains(&0) => {
            let hint = "unpack it, or save it as CSV or JSON in UTF-8";
            return CliError::input(format!("{name} is not text")).hint(hint);
        }
        _ => "latin1",
    };
    let valid = &bytes[..error.utf8_error().valid_up_to()];
    let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
    CliError::input(format!("{name} line {line} is not UTF-8"))
        .hint(format!("`iconv -f {encoding} -t utf-8` converts it"))
}

#[cfg(test)]
mod tests;
