//! Reads rows: CSV with a header, or JSON objects, one per line or in an array. Finds all that is
//! wrong before anything is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use petstore_client::NewPet;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::fields::{CATEGORY, FIELDS, Fields, NAME, shorten};
use crate::error::{CliError, Failure, Kind, Result};
use crate::suggest::similar;
use crate::time::plural;

/// The maximum number of listed problems.
const MAX_LISTED: usize = 20;
/// The columns of exports, and of the files that an import writes. The service assigns new ids.
const IGNORED: [&str; 3] = ["id", "reason", "petId"];

/// The content of a row, in short. It binds the records of a journal to their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest(u128);

impl Digest {
    /// The first half of the SHA-256 of the JSON with sorted keys.
    fn of(pet: &NewPet) -> Self {
        let mut object = serde_json::to_value(pet).unwrap_or_default();
        object.sort_all_objects();
        let hash = Sha256::digest(object.to_string());
        let half = hash[..16].iter();
        Self(half.fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A row of an input.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    /// The line on which it starts.
    line: usize,
    /// Where it stands in the text.
    span: Range<usize>,
    /// The pet to create, with its digest; `None` if the row is invalid.
    pet: Option<(NewPet, Digest)>,
}

impl Row {
    pub(super) fn pet(&self) -> Option<&NewPet> {
        self.pet.as_ref().map(|(pet, _)| pet)
    }

    pub(super) fn digest(&self) -> Option<Digest> {
        self.pet.as_ref().map(|(_, digest)| *digest)
    }
}

/// What is wrong with a row.
#[derive(Debug)]
struct Fault {
    row: usize,
    field: Option<String>,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// The rows of an input, some of which may be invalid.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The name of the input in messages.
    name: String,
    text: String,
    /// The separator of CSV; `None` for JSON.
    delimiter: Option<u8>,
    /// Where the header of CSV stands in the text.
    header: Range<usize>,
    rows: Vec<Row>,
    faults: Vec<Fault>,
    /// Columns or fields that are ignored.
    ignored: Vec<String>,
    /// The statuses of exported rows that the specification does not list.
    statuses: BTreeSet<String>,
}

impl Rows {
    /// Reads rows. If no separator is given, the content decides.
    pub(crate) fn read(name: &str, bytes: Vec<u8>, delimiter: Option<u8>) -> Result<Self> {
        let mut text = String::from_utf8(bytes).map_err(|error| not_utf8(name, &error))?;
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        let first = text.trim_start();
        let first = first.split(['\r', '\n']).next().unwrap_or_default();
        let delimiter = match first.bytes().next() {
            _ if delimiter.is_some() => delimiter,
            Some(b'{' | b'[') => None,
            _ if first.contains('\t') && !first.contains(',') => Some(b'\t'),
            _ => Some(b','),
        };
        let mut rows = Self {
            name: name.to_owned(),
            delimiter,
            ..Self::default()
        };
        let lines = Lines::of(&text);
        match delimiter {
            Some(delimiter) => rows.csv(&text, &lines, delimiter)?,
            None => rows.json(&text, &lines)?,
        }
        rows.text = text;
        Ok(rows)
    }

    /// Returns the name in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn all(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the number of invalid rows.
    pub(super) fn invalid(&self) -> usize {
        self.rows.iter().filter(|row| row.pet.is_none()).count()
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
        let line = |row: usize| self.rows.get(row).map(|row| row.line);
        let before = row.checked_sub(1).and_then(line);
        match line(row) {
            Some(own) if before != Some(own) && line(row + 1) != Some(own) => ("line", own),
            _ => ("row", row + 1),
        }
    }

    /// Returns warnings about the columns that are ignored, and about statuses that the service may
    /// refuse.
    pub(super) fn warnings(&self) -> Vec<String> {
        let ignored = self.ignored.iter();
        let ignored =
            ignored.map(|name| format!("ignoring `{name}`, which is not a field of a pet"));
        let statuses = self.statuses.iter();
        let statuses =
            statuses.map(|status| format!("the specification does not list the status `{status}`"));
        ignored.chain(statuses).collect()
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
        let mut faults = Vec::new();
        for fault in &self.faults {
            let mut object = self.place_json(fault.row);
            if let Some(field) = &fault.field {
                object["field"] = json!(field);
            }
            object["problem"] = json!(fault.text);
            faults.push(object);
        }
        faults.into()
    }

    /// Returns a line for each problem, up to a number.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut list = Vec::new();
        for fault in self.faults.iter().take(MAX_LISTED) {
            let joint = if fault.field.is_some() { "," } else { ":" };
            list.push(format!("{}{joint} {fault}", self.place(fault.row)));
        }
        let more = self.faults.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            list.push(format!("{more} more; --error-format json lists all"));
        }
        list
    }

    /// Returns what is wrong with each invalid row.
    pub(super) fn reasons(&self) -> BTreeMap<usize, Value> {
        let mut reasons = BTreeMap::<usize, Vec<String>>::new();
        for fault in &self.faults {
            reasons
                .entry(fault.row)
                .or_default()
                .push(fault.to_string());
        }
        let reasons = reasons.into_iter();
        reasons
            .map(|(row, faults)| (row, faults.join("; ").into()))
            .collect()
    }

    fn error(&self, problem: impl fmt::Display) -> CliError {
        CliError::input(format!("{} {problem}", self.name))
    }

    /// Adds what is wrong with the row that is added next.
    fn fault(&mut self, field: Option<&str>, text: impl Into<String>) {
        self.faults.push(Fault {
            row: self.rows.len(),
            field: field.map(str::to_owned),
            text: text.into(),
        });
    }

    fn ignore(&mut self, name: &str) {
        if !IGNORED.contains(&name) && !self.ignored.iter().any(|other| other == name) {
            self.ignored.push(name.to_owned());
        }
    }

    /// Returns the pet of a row, or adds what is wrong with it.
    fn pet(&mut self, fields: &Fields<'_>) -> Option<NewPet> {
        match fields.pet() {
            Ok(pet) => {
                let unknown = pet.status.iter().filter(|status| !status.is_known());
                self.statuses.extend(unknown.map(ToString::to_string));
                Some(pet)
            }
            Err(wrong) => {
                for (field, text) in wrong {
                    self.fault(Some(field), text);
                }
                None
            }
        }
    }

    fn add(&mut self, line: usize, span: Range<usize>, pet: Option<NewPet>) {
        let pet = pet.map(|pet| {
            let digest = Digest::of(&pet);
            (pet, digest)
        });
        self.rows.push(Row { line, span, pet });
    }

    fn csv(&mut self, text: &str, lines: &Lines, delimiter: u8) -> Result<()> {
        let unreadable = |error: csv::Error| CliError::input(error.to_string());
        let mut reader = csv_reader(text, delimiter);
        let mut header = StringRecord::new();
        if !reader.read_record(&mut header).map_err(unreadable)? {
            return Ok(());
        }
        self.header = span(text, &header, &reader);
        self.check_header(
            &header,
            lines.number(self.header.start),
            &text[self.header.clone()],
        )?;
        let mut record = StringRecord::new();
        while reader.read_record(&mut record).map_err(unreadable)? {
            let span = span(text, &record, &reader);
            let line = lines.number(span.start);
            if span.end == text.len() && has_open_quote(&text[span.clone()], delimiter) {
                let error = self.error(format!("line {line}: a quote is never closed"));
                return Err(error.hint("close it; a quote inside a value is written `\"\"`"));
            }
            let pet = match record.len() == header.len() {
                true => self.pet(&Fields::Csv(&header, &record)),
                false => {
                    let values = plural(record.len(), "value", "values");
                    self.fault(None, format!("{values}; the header has {}", header.len()));
                    None
                }
            };
            self.add(line, span, pet);
        }
        Ok(())
    }

    /// Refuses a header without the columns of a pet, with all that is wrong. Ignores other columns.
    fn check_header(&mut self, header: &StringRecord, line: usize, text: &str) -> Result<()> {
        if header.len() == 1
            && let Some(other) = [';', '|'].into_iter().find(|other| text.contains(*other))
        {
            let error = self.error(format!("is separated by `{other}`"));
            return Err(error.hint(format!("`--delimiter '{other}'` reads it")));
        }
        let times = |field: &str| header.iter().filter(|name| *name == field).count();
        let mut missing: Vec<_> = FIELDS
            .into_iter()
            .filter(|field| times(field) == 0)
            .collect();
        let mut problems = Vec::new();
        let mut is_header = false;
        for name in header {
            if FIELDS.contains(&name) || IGNORED.contains(&name) {
                is_header = true;
            } else if let Some(field) = similar(name, missing.clone()) {
                is_header = true;
                missing.retain(|other| *other != field);
                let name = shorten(name);
                problems.push(format!("unknown column `{name}`; did you mean `{field}`?"));
            } else {
                self.ignore(name);
            }
        }
        if !is_header {
            let error = self.error(format!(
                "has no header: line {line} is `{}`",
                shorten(text.trim_end())
            ));
            return Err(error.hint(format!("put `{}` above it", FIELDS.join(","))));
        }
        for field in FIELDS {
            if [NAME, CATEGORY].contains(&field) && missing.contains(&field) {
                problems.push(format!("no column `{field}`"));
            } else if times(field) > 1 {
                problems.push(format!("{} columns `{field}`", times(field)));
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        let problem = format!("cannot be read: its header, line {line}, is wrong");
        let hint = format!("name the columns {}", FIELDS.join(", "));
        Err(self.error(problem).list(problems).hint(hint))
    }

    fn json(&mut self, text: &str, lines: &Lines) -> Result<()> {
        let values = json_values(text.trim_end()).map_err(|error| self.not_json(&error))?;
        let beginning = text.as_ptr() as usize;
        for value in values {
            let value = value.get();
            let start = value.as_ptr() as usize - beginning;
            let pet = self.json_pet(value);
            self.add(lines.number(start), start..start + value.len(), pet);
        }
        Ok(())
    }

    fn not_json(&self, error: &serde_json::Error) -> CliError {
        let problem = match error.is_eof() {
            true => "the JSON ends too early".to_owned(),
            false => format!("not valid JSON at column {}", error.column()),
        };
        let error = self.error(format!("line {}: {problem}", error.line()));
        error.hint("write one JSON object per line, or all in one array")
    }

    fn json_pet(&mut self, value: &str) -> Option<NewPet> {
        if !value.starts_with('{') {
            self.fault(None, format!("`{}` is not an object", shorten(value)));
            return None;
        }
        let Ok(object) = serde_json::from_str::<BTreeMap<String, &RawValue>>(value) else {
            self.fault(None, "the name of a field is not Unicode");
            return None;
        };
        let mut has_typo = false;
        for name in object
            .keys()
            .filter(|name| !FIELDS.contains(&name.as_str()))
        {
            match similar(name, FIELDS).filter(|_| !IGNORED.contains(&name.as_str())) {
                Some(meant) => {
                    has_typo = true;
                    let problem = format!("unknown; did you mean `{meant}`?");
                    self.fault(Some(&shorten(name)), problem);
                }
                None => self.ignore(name),
            }
        }
        let pet = self.pet(&Fields::Json(object));
        pet.filter(|_| !has_typo)
    }

    /// Returns the rows that have a value, with this value in one more column, so that they can be
    /// corrected and imported. The format is CSV if the input is CSV, and else one JSON object per
    /// line.
    pub(super) fn with_column(
        &self,
        name: &str,
        values: &BTreeMap<usize, Value>,
    ) -> Result<Vec<u8>> {
        match self.delimiter {
            None => Ok(self.json_with_column(name, values).into_bytes()),
            Some(delimiter) => {
                let text = self.csv_with_column(delimiter, name, values);
                text.map_err(CliError::internal)
            }
        }
    }

    fn csv_with_column(
        &self,
        delimiter: u8,
        name: &str,
        values: &BTreeMap<usize, Value>,
    ) -> csv::Result<Vec<u8>> {
        let read = |span: &Range<usize>| {
            let mut record = StringRecord::new();
            csv_reader(&self.text[span.clone()], delimiter).read_record(&mut record)?;
            Ok::<_, csv::Error>(record)
        };
        let header = read(&self.header)?;
        let mut builder = WriterBuilder::new();
        builder.delimiter(delimiter).flexible(true);
        let mut writer = builder.from_writer(Vec::new());
        writer.write_record(header.iter().chain([name]))?;
        for (row, value) in values {
            let mut record = read(&self.rows[*row].span)?;
            while record.len() < header.len() {
                record.push_field("");
            }
            match value {
                Value::String(text) => record.push_field(text),
                value => record.push_field(&value.to_string()),
            }
            writer.write_record(&record)?;
        }
        writer
            .into_inner()
            .map_err(|error| error.into_error().into())
    }

    fn json_with_column(&self, name: &str, values: &BTreeMap<usize, Value>) -> String {
        let mut text = String::new();
        for (row, value) in values {
            let row = &self.text[self.rows[*row].span.clone()];
            let mut object = match serde_json::from_str(row) {
                Ok(Value::Object(object)) => object,
                Ok(other) => Map::from_iter([("value".to_owned(), other)]),
                Err(_) => Map::from_iter([("value".to_owned(), row.into())]),
            };
            object.insert(name.to_owned(), value.clone());
            text += &Value::Object(object).to_string();
            text.push('\n');
        }
        text
    }
}

/// The byte positions at which the lines of a text start.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        // Some old programs end lines with CR only.
        let end = if text.contains('\n') { '\n' } else { '\r' };
        let breaks = text.match_indices(end).map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(breaks).collect())
    }

    /// Returns the line of a byte position, from 1.
    fn number(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at)
    }
}

fn csv_reader(text: &str, delimiter: u8) -> csv::Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(false);
    builder.from_reader(text.as_bytes())
}

/// Returns where the last read record stands in the text.
fn span(text: &str, record: &StringRecord, reader: &csv::Reader<&[u8]>) -> Range<usize> {
    let at = |position: &csv::Position| usize::try_from(position.byte()).unwrap_or(text.len());
    let raw = &text[record.position().map_or(0, at)..at(reader.position())];
    // Empty lines that the reader skipped may come first.
    let start = raw.len() - raw.trim_start_matches(['\r', '\n']).len();
    let end = at(reader.position());
    end - raw.len() + start..end
}

/// Returns whether the last record begins a quoted value that it does not end.
fn has_open_quote(raw: &str, delimiter: u8) -> bool {
    let begins_quoted =
        raw.starts_with('"') || raw.contains(&format!("{}\"", char::from(delimiter)));
    begins_quoted && raw.matches('"').count() % 2 == 1
}

/// Splits text into JSON values: those of an array, or concatenated values.
fn json_values(text: &str) -> serde_json::Result<Vec<&RawValue>> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect()
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
