//! Checks the rows of an input, and reports all errors together.

use std::collections::BTreeSet;
use std::fmt;

use csv::{ReaderBuilder, StringRecord};

use super::cells::{
    CATEGORY, Cells, Columns, FIELDS, Mapping, NAME, Object, WrongField, column, json_values,
    shorten,
};
use super::rows::{Fault, Place, Row};
use crate::error::{CliError, Result};
use crate::suggest::similar;

/// The maximum number of listed errors.
const MAX_LISTED: usize = 20;
/// Columns of exports, and of files of rejected rows, that are ignored. The service assigns new
/// ids.
const IGNORED: [&str; 2] = ["id", "reason"];
/// The column of a file of created rows, which is ignored too.
const OWN: [&str; 1] = ["petId"];

/// The result of the checks.
pub(super) struct ValidRows {
    pub(super) rows: Vec<Row>,
    /// Columns or fields that are not those of a pet.
    pub(super) ignored: Vec<String>,
    /// The statuses that the specification does not list.
    pub(super) statuses: BTreeSet<String>,
}

/// Checks the rows of an input.
#[derive(Default)]
pub(super) struct Checker<'n> {
    /// The input's name in messages.
    name: &'n str,
    /// The columns whose names differ from those of their fields.
    map: &'n [Mapping],
    /// The byte position at which each line starts.
    lines: Vec<usize>,
    rows: Vec<Row>,
    faults: Vec<Fault>,
    ignored: Vec<String>,
    statuses: BTreeSet<String>,
}

/// Returns whether the import knows a column.
fn is_known(name: &str) -> bool {
    FIELDS.contains(&name) || IGNORED.contains(&name)
}

/// Returns the field that a column with a similar name probably holds, if no column has its name.
fn meant(header: &StringRecord, name: &str) -> Option<&'static str> {
    let mut missing = Vec::new();
    for field in FIELDS {
        if column(header, field).is_none() {
            missing.push(field);
        }
    }
    similar(name, missing)
}

/// Returns the separator of a header without commas.
fn other_separator(first: &str) -> Option<char> {
    let mut others = [';', '|'].into_iter();
    others.find(|other| separates(first, *other))
}

/// Returns whether the header, split at this separator, has a name like that of a known column.
fn separates(first: &str, other: char) -> bool {
    first.contains(other) && first.split(other).any(is_like_field)
}

fn is_like_field(name: &str) -> bool {
    is_known(name) || similar(name, FIELDS).is_some()
}

fn is_repeated(header: &StringRecord, name: &str) -> bool {
    let mut same = header.iter().filter(|other| *other == name);
    same.nth(1).is_some()
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unreadable(error: csv::Error) -> CliError {
    CliError::input(error.to_string())
}

/// Returns the text from the start of a record.
fn rest_from<'t>(record: &StringRecord, text: &'t str) -> &'t str {
    let start = match record.position() {
        Some(position) => position.byte(),
        None => 0,
    };
    let start = usize::try_from(start).unwrap_or(0);
    let rest = text.get(start..).unwrap_or_default();
    // Empty lines that the reader skipped may follow the position.
    rest.trim_start_matches(['\r', '\n'])
}

impl<'n> Checker<'n> {
    pub(super) fn new(name: &'n str, lines: Vec<usize>, map: &'n [Mapping]) -> Self {
        Self {
            name,
            lines,
            map,
            ..Self::default()
        }
    }

    fn error(&self, problem: impl fmt::Display) -> CliError {
        CliError::input(format!("{} {problem}", self.name))
    }

    fn fault(&mut self, place: Place, problem: impl Into<String>) {
        self.faults.push(Fault::new(place, None, problem));
    }

    /// Returns the line of a byte position, from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    fn ignore(&mut self, name: &str) {
        if IGNORED.contains(&name) || OWN.contains(&name) {
            return;
        }
        let name = name.to_owned();
        if !self.ignored.contains(&name) {
            self.ignored.push(name);
        }
    }

    pub(super) fn csv(&mut self, text: &str, delimiter: u8, first: &str) -> Result<()> {
        let mut reader = ReaderBuilder::new();
        let mut reader = reader
            .delimiter(delimiter)
            .flexible(true)
            .from_reader(text.as_bytes());
        let header = reader.headers().map_err(unreadable)?;
        if header.is_empty() {
            return Ok(());
        }
        let header = self.mapped(header)?;
        let start = text.find(first).unwrap_or(0);
        let line = self.line(start);
        let columns = self.columns(&header, line, first)?;
        let expected = header.len();
        let mut record = StringRecord::new();
        while reader.read_record(&mut record).map_err(unreadable)? {
            let raw = rest_from(&record, text);
            let line = self.line(text.len() - raw.len());
            let place = Place::Line(line);
            let found = record.len();
            if found == expected {
                let cells = columns.cells(&record);
                self.row(place, cells);
                continue;
            }
            let end = reader.position().byte();
            let is_last = end == text.len() as u64;
            let quotes = raw.matches('"').count();
            if is_last && quotes % 2 == 1 {
                return Err(self.open_quote(line));
            }
            let values = if found == 1 { "value" } else { "values" };
            let problem = format!("{found} {values}; the header has {expected}");
            self.fault(place, problem);
        }
        Ok(())
    }

    fn open_quote(&self, line: usize) -> CliError {
        let problem = format!("line {line}: a quote is never closed");
        let hint = "close it; a quote inside a value is written `\"\"`";
        self.error(problem).hint(hint)
    }

    /// Returns the header with the names of fields for the columns that `--map` names.
    fn mapped(&self, header: &StringRecord) -> Result<StringRecord> {
        let mut names: Vec<&str> = header.iter().collect();
        for mapping in self.map {
            let column = header.iter().position(|name| name == mapping.column);
            let Some(column) = column else {
                let problem = format!("has no column `{}`", shorten(&mapping.column));
                let hint = "`--map COLUMN=FIELD` names a column as it is in the header";
                return Err(self.error(problem).hint(hint));
            };
            names[column] = mapping.field;
        }
        Ok(names.into())
    }

    /// Finds the columns of the fields of a pet.
    fn columns(&mut self, header: &StringRecord, line: usize, first: &str) -> Result<Columns> {
        self.refuse_other_separator(header, first)?;
        self.refuse_missing_header(header, line, first)?;
        for name in header {
            self.check_column(header, name)?;
        }
        for field in [NAME, CATEGORY] {
            if column(header, field).is_some() {
                continue;
            }
            let problem = format!("has no column `{field}`");
            let hint = "add it, or name the column that holds it with `--map COLUMN=FIELD`";
            return Err(self.error(problem).hint(hint));
        }
        Ok(Columns::of(header))
    }

    fn refuse_other_separator(&self, header: &StringRecord, first: &str) -> Result<()> {
        if header.len() > 1 {
            return Ok(());
        }
        let Some(other) = other_separator(first) else {
            return Ok(());
        };
        let problem = format!("is separated by `{other}`");
        let hint = format!("`--delimiter '{other}'` reads it");
        Err(self.error(problem).hint(hint))
    }

    fn refuse_missing_header(&self, header: &StringRecord, line: usize, first: &str) -> Result<()> {
        for name in header {
            if is_known(name) || meant(header, name).is_some() {
                return Ok(());
            }
        }
        let first = shorten(first);
        let fields = FIELDS.join(",");
        let problem = format!("has no header: line {line} is `{first}`");
        let hint = format!("put `{fields}` above it");
        Err(self.error(problem).hint(hint))
    }

    /// Refuses a column that occurs twice or is mistyped, and ignores an unknown one.
    fn check_column(&mut self, header: &StringRecord, name: &str) -> Result<()> {
        if is_known(name) {
            let is_field = FIELDS.contains(&name);
            if is_field && is_repeated(header, name) {
                let problem = format!("has two columns `{name}`");
                return Err(self.error(problem));
            }
            return Ok(());
        }
        match meant(header, name) {
            Some(meant) => {
                let short = shorten(name);
                let problem = format!("has an unknown column `{short}`");
                let hint = format!("did you mean `{meant}`? `--map '{name}={meant}'` reads it");
                Err(self.error(problem).hint(hint))
            }
            None => {
                self.ignore(name);
                Ok(())
            }
        }
    }

    pub(super) fn json(&mut self, text: &str) -> Result<()> {
        let values = match json_values(text.trim_end()) {
            Ok(values) => values,
            Err(error) => return Err(self.not_json(&error)),
        };
        let mut lines = Vec::new();
        let beginning = text.as_ptr() as usize;
        for value in &values {
            let start = value.get().as_ptr() as usize;
            let line = self.line(start - beginning);
            lines.push(line);
        }
        let have_own_lines = lines.is_sorted_by(|before, after| before < after);
        for (index, value) in values.into_iter().enumerate() {
            let place = if have_own_lines {
                Place::Line(lines[index])
            } else {
                Place::Row(index + 1)
            };
            self.json_row(place, value.get());
        }
        Ok(())
    }

    fn not_json(&self, error: &serde_json::Error) -> CliError {
        let line = error.line();
        let problem = match error.is_eof() {
            true => "the JSON ends too early".to_owned(),
            false => format!("not valid JSON at column {}", error.column()),
        };
        let error = self.error(format!("line {line}: {problem}"));
        error.hint("write one JSON object per line, or all in one array")
    }

    fn json_row(&mut self, place: Place, value: &str) {
        match serde_json::from_str::<Object<'_>>(value) {
            Ok(object) => self.object(place, &object),
            Err(_) if !value.starts_with('{') => {
                let value = shorten(value);
                self.fault(place, format!("`{value}` is not an object"));
            }
            Err(error) if error.is_data() => {
                self.fault(place, "a field is repeated");
            }
            Err(_) => {
                let problem = "a number is too large, a text is not Unicode, or the values are \
                               nested too deeply";
                self.fault(place, problem);
            }
        }
    }

    fn object(&mut self, place: Place, object: &Object<'_>) {
        for other in object.others.keys() {
            if IGNORED.contains(&other.as_str()) {
                continue;
            }
            match similar(other, FIELDS) {
                Some(meant) => {
                    let problem = format!("unknown; did you mean `{meant}`?");
                    let name = shorten(other);
                    let fault = Fault::new(place, Some(&name), problem);
                    self.faults.push(fault);
                }
                None => self.ignore(other),
            }
        }
        self.row(place, object.cells());
    }

    /// Checks the values of a row.
    fn row(&mut self, place: Place, cells: Cells<'_>) {
        let pet = match cells.pet() {
            Ok(pet) => pet,
            Err(wrong) => {
                for WrongField { field, problem } in wrong {
                    let fault = Fault::new(place, Some(field), problem);
                    self.faults.push(fault);
                }
                return;
            }
        };
        if let Some(status) = &pet.status
            && !status.is_known()
        {
            self.statuses.insert(status.to_string());
        }
        self.rows.push(Row::new(place, pet));
    }

    pub(super) fn finish(self) -> Result<ValidRows> {
        let name = self.name;
        let places: BTreeSet<_> = self.faults.iter().map(Fault::place).collect();
        if places.is_empty() {
            return Ok(ValidRows {
                rows: self.rows,
                ignored: self.ignored,
                statuses: self.statuses,
            });
        }
        let message = match places.len() {
            1 => format!("1 row of {name} is invalid; nothing was sent"),
            rows => format!("{rows} rows of {name} are invalid; nothing was sent"),
        };
        let mut list = Vec::new();
        for fault in self.faults.iter().take(MAX_LISTED) {
            list.push(fault.to_string());
        }
        let more = self.faults.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            let rest = format!("{more} more; --error-format json lists all");
            list.push(rest);
        }
        let mut error = CliError::input(message).list(list);
        if let CliError::Failure(failure) = &mut error {
            let all = self.faults.iter().map(Fault::json);
            failure.fields.insert("rows".to_owned(), all.collect());
        }
        Err(error.hint("correct the input and run the command again"))
    }
}
