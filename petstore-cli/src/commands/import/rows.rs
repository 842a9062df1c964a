//! Reads rows: CSV with a header, or JSON objects, one per line or in an array. Finds all that is
//! wrong before anything is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use petstore_client::NewPet;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::fields::{CATEGORY, Cells, Columns, FIELDS, NAME, Object, shorten};
use crate::error::{CliError, Failure, Kind, Result};
use crate::suggest::similar;
use crate::time::plural;

/// The maximum number of listed problems.
const MAX_LISTED: usize = 20;
/// The columns of exports, and of the files that an import writes. The service assigns new ids.
const IGNORED: [&str; 3] = ["id", "reason", "petId"];

/// The place of a row in its input, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The line on which the row starts.
    Line(usize),
    /// The number of the row, if several rows start on one line.
    Row(usize),
}

impl Place {
    /// Returns the place for programs: `{"line": 3}`.
    pub(super) fn json(self) -> Value {
        match self {
            Self::Line(number) => json!({ "line": number }),
            Self::Row(number) => json!({ "row": number }),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Row(number) => write!(f, "row {number}"),
        }
    }
}

/// The content of a row, in short. It binds the records of a journal to their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest(u128);

impl Digest {
    /// The first half of the SHA-256 of the JSON with sorted keys.
    fn of(pet: &NewPet) -> Self {
        let mut object = serde_json::to_value(pet).unwrap_or_default();
        if let Value::Object(fields) = &mut object {
            fields.sort_keys();
        }
        let hash = Sha256::digest(object.to_string());
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        Self(u128::from_be_bytes(half))
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
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    place: Place,
    /// The pet to create, with its digest; `None` if the row is invalid.
    pet: Option<(NewPet, Digest)>,
}

impl Row {
    fn new(place: Place, pet: Option<NewPet>) -> Self {
        let with_digest = |pet: NewPet| {
            let digest = Digest::of(&pet);
            (pet, digest)
        };
        Self {
            place,
            pet: pet.map(with_digest),
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

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
    place: Place,
    field: Option<String>,
    text: String,
}

impl Fault {
    fn json(&self) -> Value {
        let mut object = self.place.json();
        if let Some(field) = &self.field {
            object["field"] = json!(field);
        }
        object["problem"] = json!(self.text);
        object
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{}, {field}: {}", self.place, self.text),
            None => write!(f, "{}: {}", self.place, self.text),
        }
    }
}

/// The rows of an input, some of which may be invalid.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The name of the input in messages.
    name: String,
    rows: Vec<Row>,
    faults: Vec<Fault>,
    /// Columns or fields that are ignored.
    ignored: Vec<String>,
    /// The statuses of exported rows that the specification does not list.
    statuses: BTreeSet<String>,
    text: String,
    /// The separator of CSV; `None` for JSON.
    delimiter: Option<u8>,
}

impl Rows {
    /// Reads rows. If no separator is given, the content decides.
    pub(crate) fn read(name: &str, bytes: Vec<u8>, delimiter: Option<u8>) -> Result<Self> {
        refuse_binary(name, &bytes)?;
        let text = String::from_utf8(bytes).map_err(|error| not_utf8(name, &error))?;
        let content = without_mark(&text);
        let start = content.trim_start();
        let first = start.split(['\r', '\n']).next().unwrap_or_default();
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
        let lines = Lines::of(content);
        match delimiter {
            Some(delimiter) => rows.csv(content, &lines, delimiter, first)?,
            None => rows.json(content, &lines)?,
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

    /// Returns warnings about the columns that are ignored, and about statuses that the service may
    /// refuse.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for column in &self.ignored {
            warnings.push(format!(
                "ignoring `{column}`, which is not a field of a pet"
            ));
        }
        for status in &self.statuses {
            warnings.push(format!(
                "the specification does not list the status `{status}`"
            ));
        }
        warnings
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
        self.faults.iter().map(Fault::json).collect()
    }

    /// Returns a line for each problem, up to a number.
    pub(super) fn problems(&self) -> Vec<String> {
        let shown = self.faults.iter().take(MAX_LISTED);
        let mut list: Vec<_> = shown.map(ToString::to_string).collect();
        let more = self.faults.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            list.push(format!("{more} more; --error-format json lists all"));
        }
        list
    }

    /// Returns what is wrong with each invalid row.
    pub(super) fn reasons(&self) -> BTreeMap<usize, Value> {
        let mut reasons = BTreeMap::<usize, String>::new();
        for problem in &self.faults {
            let text = match &problem.field {
                Some(field) => format!("{field}: {}", problem.text),
                None => problem.text.clone(),
            };
            let reason = reasons.entry(problem.row).or_default();
            let joint = if reason.is_empty() { "" } else { "; " };
            *reason += &format!("{joint}{text}");
        }
        let reasons = reasons.into_iter();
        reasons.map(|(row, text)| (row, text.into())).collect()
    }

    fn error(&self, problem: impl fmt::Display) -> CliError {
        CliError::input(format!("{} {problem}", self.name))
    }

    fn problem(&mut self, place: Place, field: Option<&str>, text: impl Into<String>) {
        self.faults.push(Fault {
            row: self.rows.len(),
            place,
            field: field.map(str::to_owned),
            text: text.into(),
        });
    }

    fn ignore(&mut self, name: &str) {
        if !IGNORED.contains(&name) && !self.ignored.iter().any(|other| other == name) {
            self.ignored.push(name.to_owned());
        }
    }

    /// Adds a row, or what is wrong with it.
    fn add(&mut self, place: Place, cells: Cells<'_>, is_valid: bool) {
        let pet = match cells.pet() {
            Ok(pet) => is_valid.then_some(pet),
            Err(wrong) => {
                for (field, text) in wrong {
                    self.problem(place, Some(field), text);
                }
                None
            }
        };
        if let Some(status) = pet.as_ref().and_then(|pet| pet.status.as_ref())
            && !status.is_known()
        {
            self.statuses.insert(status.to_string());
        }
        self.rows.push(Row::new(place, pet));
    }

    fn csv(&mut self, text: &str, lines: &Lines, delimiter: u8, first: &str) -> Result<()> {
        let unreadable = |error: csv::Error| CliError::input(error.to_string());
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .from_reader(text.as_bytes());
        let header = reader.headers().map_err(unreadable)?.clone();
        if header.is_empty() {
            return Ok(());
        }
        let line = lines.number(text.find(first).unwrap_or(0));
        self.check_header(&header, line, first)?;
        let columns = Columns::of(&header);
        let expected = header.len();
        let mut record = StringRecord::new();
        while reader.read_record(&mut record).map_err(unreadable)? {
            let raw = rest_from(&record, text);
            let place = Place::Line(lines.number(text.len() - raw.len()));
            if record.len() == expected {
                self.add(place, columns.cells(&record), true);
                continue;
            }
            let is_last = reader.position().byte() == text.len() as u64;
            if is_last && raw.matches('"').count() % 2 == 1 {
                let error = self.error(format!("{place}: a quote is never closed"));
                return Err(error.hint("close it; a quote inside a value is written `\"\"`"));
            }
            let values = plural(record.len(), "value", "values");
            let problem = format!("{values}; the header has {expected}");
            self.problem(place, None, problem);
            self.rows.push(Row::new(place, None));
        }
        Ok(())
    }

    /// Refuses a header without the columns of a pet, with all that is wrong. Ignores other columns.
    fn check_header(&mut self, header: &StringRecord, line: usize, first: &str) -> Result<()> {
        if header.len() == 1
            && let Some(other) = [';', '|'].iter().find(|other| separates(first, **other))
        {
            let error = self.error(format!("is separated by `{other}`"));
            return Err(error.hint(format!("`--delimiter '{other}'` reads it")));
        }
        let missing: Vec<_> = FIELDS
            .into_iter()
            .filter(|field| !header.iter().any(|name| name == *field))
            .collect();
        let mut problems = Vec::new();
        let mut is_header = false;
        let mut meant = BTreeSet::new();
        for name in header {
            if FIELDS.contains(&name) || IGNORED.contains(&name) {
                is_header = true;
                let is_twice = header.iter().filter(|other| *other == name).count() > 1;
                let problem = format!("two columns `{name}`");
                if is_twice && FIELDS.contains(&name) && !problems.contains(&problem) {
                    problems.push(problem);
                }
            } else if let Some(field) = similar(name, missing.clone()) {
                is_header = true;
                meant.insert(field);
                let name = shorten(name);
                problems.push(format!("unknown column `{name}`; did you mean `{field}`?"));
            } else {
                self.ignore(name);
            }
        }
        if !is_header {
            let first = shorten(first);
            let error = self.error(format!("has no header: line {line} is `{first}`"));
            return Err(error.hint(format!("put `{}` above it", FIELDS.join(","))));
        }
        for field in [NAME, CATEGORY] {
            if missing.contains(&field) && !meant.contains(field) {
                problems.push(format!("no column `{field}`"));
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
        let starts: Vec<_> = values
            .iter()
            .map(|value| lines.number(value.get().as_ptr() as usize - beginning))
            .collect();
        let have_own_lines = starts.is_sorted_by(|before, after| before < after);
        for (index, value) in values.into_iter().enumerate() {
            let place = match have_own_lines {
                true => Place::Line(starts[index]),
                false => Place::Row(index + 1),
            };
            self.json_row(place, value.get());
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

    fn json_row(&mut self, place: Place, value: &str) {
        let problem = match serde_json::from_str::<Object<'_>>(value) {
            Ok(object) => return self.object(place, &object),
            Err(_) if !value.starts_with('{') => format!("`{}` is not an object", shorten(value)),
            Err(error) if error.is_data() => "a field is repeated".to_owned(),
            Err(_) => "a number is too large, a text is not Unicode, or the values are nested \
                       too deeply"
                .to_owned(),
        };
        self.problem(place, None, problem);
        self.rows.push(Row::new(place, None));
    }

    fn object(&mut self, place: Place, object: &Object<'_>) {
        let mut is_valid = true;
        for other in object.others().filter(|other| !IGNORED.contains(other)) {
            match similar(other, FIELDS) {
                Some(meant) => {
                    is_valid = false;
                    let problem = format!("unknown; did you mean `{meant}`?");
                    self.problem(place, Some(&shorten(other)), problem);
                }
                None => self.ignore(other),
            }
        }
        self.add(place, object.cells(), is_valid);
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
            None => self.json_with_column(name, values),
            Some(delimiter) => self.csv_with_column(name, values, delimiter),
        }
    }

    fn json_with_column(&self, name: &str, values: &BTreeMap<usize, Value>) -> Result<Vec<u8>> {
        let objects = json_values(without_mark(&self.text)).map_err(CliError::internal)?;
        let mut text = String::new();
        for (row, value) in values {
            // A line break between fields is white space.
            let object = objects[*row].get().replace(['\n', '\r'], " ");
            text += &match object.strip_suffix('}') {
                Some(fields) if fields.trim() == "{" => format!("{{\"{name}\":{value}}}\n"),
                Some(fields) => format!("{},\"{name}\":{value}}}\n", fields.trim_end()),
                None => format!("{{\"value\":{object},\"{name}\":{value}}}\n"),
            };
        }
        Ok(text.into_bytes())
    }

    fn csv_with_column(
        &self,
        name: &str,
        values: &BTreeMap<usize, Value>,
        delimiter: u8,
    ) -> Result<Vec<u8>> {
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .from_reader(without_mark(&self.text).as_bytes());
        let mut writer = WriterBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .from_writer(Vec::new());
        let header = reader.headers().map_err(CliError::internal)?.clone();
        let mut write = |record: &StringRecord, last: &str| {
            let missing = header.len().saturating_sub(record.len());
            let cells = record.iter().chain(std::iter::repeat_n("", missing));
            writer
                .write_record(cells.chain([last]))
                .map_err(CliError::internal)
        };
        write(&header, name)?;
        for (row, record) in reader.records().enumerate() {
            let record = record.map_err(CliError::internal)?;
            match values.get(&row) {
                Some(Value::String(text)) => write(&record, text)?,
                Some(value) => write(&record, &value.to_string())?,
                None => {}
            }
        }
        writer.into_inner().map_err(CliError::internal)
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

/// Returns whether the header, split at this separator, has a name like that of a known column.
fn separates(first: &str, other: char) -> bool {
    let mut names = first.split(other);
    first.contains(other)
        && names.any(|name| {
            let is_known = FIELDS.contains(&name) || IGNORED.contains(&name);
            is_known || similar(name, FIELDS).is_some()
        })
}

/// Returns the text from the start of a record.
fn rest_from<'t>(record: &StringRecord, text: &'t str) -> &'t str {
    let start = record.position().map_or(0, csv::Position::byte);
    let rest = text.get(usize::try_from(start).unwrap_or(0)..);
    // Empty lines that the reader skipped may follow the position.
    rest.unwrap_or_default().trim_start_matches(['\r', '\n'])
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

/// Refuses a compressed file, and a file that begins with zeros. They are no text.
fn refuse_binary(name: &str, bytes: &[u8]) -> Result<()> {
    let program = match bytes {
        [0x1f, 0x8b, ..] => "gunzip",
        [b'P', b'K', 3, 4, ..] => "unzip",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "unzstd",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "unxz",
        [0, ..] => {
            let problem = format!("{name} is not text: it begins with a zero byte");
            return Err(CliError::input(problem));
        }
        _ => return Ok(()),
    };
    let problem = format!("{name} is compressed");
    Err(CliError::input(problem).hint(format!("`{program}` unpacks it")))
}

fn not_utf8(name: &str, error: &std::string::FromUtf8Error) -> CliError {
    let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
    let encoding = match error.as_bytes() {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "utf-16",
        _ => "latin1",
    };
    CliError::input(format!("{name} line {line} is not UTF-8"))
        .hint(format!("`iconv -f {encoding} -t utf-8` converts it"))
}

/// Returns the text without a byte order mark.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(test)]
mod tests;
