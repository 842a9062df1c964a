//! The rows of an input: CSV with a header, or JSON objects, one per line or in an array. All that is
//! wrong is found before anything is sent.

mod csv_text;
mod fields;
mod json_text;

use std::collections::BTreeMap;

use petstore_client::NewPet;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::{CliError, Failure, Kind, Result};
use crate::time::count;

/// The maximum number of problems that an error lists for people.
const MAX_LISTED: usize = 20;

/// The content of a row, in short. It binds the records of a journal to their rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Digest(String);

impl Digest {
    /// The first half of the SHA-256 of the JSON with sorted keys.
    fn of(pet: &NewPet) -> Self {
        let mut content = json!(pet);
        content.sort_all_objects();
        let hash = Sha256::digest(content.to_string());
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        Self(format!("{:032x}", u128::from_be_bytes(half)))
    }
}

/// A row of an input.
#[derive(Debug)]
pub(super) struct Row {
    /// The line on which it starts.
    line: usize,
    /// The pet to create, or all that is wrong with the row.
    pet: Result<NewPet, String>,
}

impl Row {
    /// Returns the pet to create; `None` if the row is invalid.
    pub(super) fn pet(&self) -> Option<&NewPet> {
        self.pet.as_ref().ok()
    }

    pub(super) fn digest(&self) -> Option<Digest> {
        self.pet().map(Digest::of)
    }
}

/// What a reader makes of an input.
#[derive(Default)]
struct Parsed {
    /// The rows, each with the byte at which it starts.
    rows: Vec<(usize, Result<NewPet, String>)>,
    /// The columns or fields that are ignored.
    ignored: Vec<String>,
    /// Whether the quotes of a row are wrong.
    is_misquoted: bool,
}

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
        let mut text = String::from_utf8(bytes).map_err(|error| {
            let line = fields::line(error.as_bytes(), error.utf8_error().valid_up_to());
            CliError::input(format!("{name} line {line} is not UTF-8"))
                .hint("save it as CSV or JSON in UTF-8")
        })?;
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let first_line = text.trim_start().lines().next().unwrap_or_default();
        let delimiter = match delimiter {
            None if first_line.starts_with(['{', '[']) => None,
            None => Some(csv_text::separator(first_line)),
            given => given,
        };
        let parsed = match delimiter {
            Some(delimiter) => csv_text::read(name, &text, delimiter)?,
            None => json_text::read(name, &text)?,
        };
        let mut rows = Vec::new();
        let (mut line, mut counted) = (1, 0);
        for (start, pet) in parsed.rows {
            line += text[counted..start].matches('\n').count();
            counted = start;
            rows.push(Row { line, pet });
        }
        let rows = Self {
            name: name.to_owned(),
            text,
            delimiter,
            rows,
            ignored: parsed.ignored,
        };
        // Then nobody knows which rows there are, and no row may be sent.
        if parsed.is_misquoted {
            let message = format!("{name} cannot be read: quotes are wrong");
            let failure = rows.failure(Kind::Input, message, rows.invalid());
            return Err(failure.hint(csv_text::QUOTES).into());
        }
        Ok(rows)
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

    /// Returns the invalid rows, each with all that is wrong with it.
    pub(super) fn invalid(&self) -> impl Iterator<Item = (usize, &str)> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(row, it)| Some((row, it.pet.as_ref().err()?.as_str())))
    }

    /// Returns where a row stands: its line; its number if it shares a line with another row.
    pub(super) fn place(&self, row: usize) -> String {
        let (what, number) = self.numbered(row);
        format!("{what} {number}")
    }

    /// Returns a row and a value for programs: `{"line": 3, "pet": 7}`.
    pub(super) fn object(&self, row: usize, name: &str, value: impl Into<Value>) -> Value {
        let (what, number) = self.numbered(row);
        json!({ what: number, name: value.into() })
    }

    fn numbered(&self, row: usize) -> (&'static str, usize) {
        let line = |row: usize| self.rows.get(row).map(|row| row.line);
        let before = row.checked_sub(1).and_then(line);
        let next = row.saturating_add(1);
        match line(row) {
            Some(own) if before != Some(own) && line(next) != Some(own) => ("line", own),
            _ => ("row", next),
        }
    }

    /// Fails if a row is invalid, with all that is wrong.
    pub(crate) fn check(&self) -> Result<()> {
        let rows = match self.invalid().count() {
            0 => return Ok(()),
            1 => format!("1 row of {} is", self.name),
            rows => format!("{rows} rows of {} are", self.name),
        };
        let message = format!("{rows} invalid; nothing was sent");
        let failure = self.failure(Kind::Input, message, self.invalid());
        Err(failure
            .hint("correct the input, or send the valid rows with `--skip-invalid`")
            .into())
    }

    /// Returns an error that lists rows with a problem: some for people, and all for programs.
    pub(super) fn failure<'p>(
        &self,
        kind: Kind,
        message: String,
        problems: impl Iterator<Item = (usize, &'p str)>,
    ) -> Failure {
        let mut failure = Failure::new(kind, message);
        let mut rows = Vec::new();
        for (row, problem) in problems {
            if rows.len() < MAX_LISTED {
                failure.list.push(format!("{}: {problem}", self.place(row)));
            }
            rows.push(self.object(row, "problem", problem));
        }
        let more = rows.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            let text = format!("{} more; --error-format json lists all", count(more));
            failure.list.push(text);
        }
        if !rows.is_empty() {
            failure.fields.insert("rows".to_owned(), rows.into());
        }
        failure
    }

    /// Returns the rows that have a value, with this value in one more column, so that they can be
    /// corrected and imported. The format is CSV if the input is CSV, and else one JSON object per
    /// line.
    pub(super) fn with_column(
        &self,
        column: &str,
        values: &BTreeMap<usize, Value>,
    ) -> Result<Vec<u8>> {
        match self.delimiter {
            Some(delimiter) => csv_text::with_column(&self.text, delimiter, column, values)
                .map_err(CliError::internal),
            None => json_text::with_column(&self.text, column, values).map_err(CliError::internal),
        }
    }
}

#[cfg(test)]
mod tests;
