//! Checks the rows of an input, and reports all errors together.

use std::collections::BTreeMap;
use std::fmt;

use csv::{ReaderBuilder, StringRecord};
use petstore_client::{NewPet, PetStatus};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::error::{CliError, Kind};
use crate::suggest::similar;

/// The maximum number of listed errors.
const MAX_LISTED: usize = 20;
/// The maximum length of a value in a message, in characters.
const MAX_SHOWN: usize = 40;

const NAME: &str = "name";
const CATEGORY: &str = "categoryId";
const STATUS: &str = "status";
const FIELDS: [&str; 3] = [NAME, CATEGORY, STATUS];
/// Ignored columns of exports and files of rejected rows. The service assigns new ids.
const IGNORED: [&str; 2] = ["id", "reason"];

/// The place of a row in its input, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The line on which it starts.
    Line(usize),
    /// Its number, if several rows start on one line.
    Row(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// A pet to create.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) place: Place,
    pub(crate) pet: NewPet,
}

impl Row {
    /// Returns a checksum of the sent content, which detects changed rows.
    pub(crate) fn digest(&self) -> u32 {
        crc32fast::hash(&serde_json::to_vec(&self.pet).unwrap_or_default())
    }
}

/// Splits text into JSON values: those of an array, or concatenated values.
pub(super) fn json_values(text: &str) -> serde_json::Result<Vec<&RawValue>> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect()
}

/// The fields of a JSON object. A repeated field is an error.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object<'t> {
    #[serde(borrow)]
    name: Option<&'t RawValue>,
    #[serde(borrow)]
    category_id: Option<&'t RawValue>,
    #[serde(borrow)]
    status: Option<&'t RawValue>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// Checks the rows of an input.
#[derive(Default)]
pub(super) struct Checker<'n> {
    /// How messages call the input.
    name: &'n str,
    is_json: bool,
    /// The start of each line.
    lines: Vec<usize>,
    pub(super) rows: Vec<Row>,
    /// The errors, with the places of their rows.
    faults: BTreeMap<Place, Vec<String>>,
    pub(super) ignored: Vec<String>,
}

impl<'n> Checker<'n> {
    pub(super) fn new(name: &'n str, lines: Vec<usize>, is_json: bool) -> Self {
        Self {
            name,
            lines,
            is_json,
            ..Self::default()
        }
    }

    fn error(&self, problem: impl fmt::Display) -> CliError {
        CliError::new(Kind::Input, format!("{} {problem}", self.name))
    }

    fn fault(&mut self, place: Place, problem: impl fmt::Display) {
        self.faults
            .entry(place)
            .or_default()
            .push(format!("{place}: {problem}"));
    }

    /// Returns the line of a byte position, from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    fn ignore(&mut self, name: &str) {
        if !IGNORED.contains(&name) && !self.ignored.iter().any(|known| known == name) {
            self.ignored.push(name.to_owned());
        }
    }

    pub(super) fn csv(&mut self, text: &str, delimiter: u8, first: &str) -> Result<(), CliError> {
        let mut reader = ReaderBuilder::new();
        let mut reader = reader
            .delimiter(delimiter)
            .flexible(true)
            .from_reader(text.as_bytes());
        let unreadable = |error: csv::Error| CliError::new(Kind::Input, error.to_string());
        let header = reader.headers().map_err(unreadable)?.clone();
        if header.is_empty() {
            return Ok(());
        }
        let columns = self.columns(&header, self.line(text.find(first).unwrap_or(0)), first)?;
        let mut record = StringRecord::new();
        while reader.read_record(&mut record).map_err(unreadable)? {
            let position = record.position().map_or(0, csv::Position::byte);
            let rest = text
                .get(usize::try_from(position).unwrap_or(0)..)
                .unwrap_or_default();
            // The position may be before empty lines that the reader skipped.
            let raw = rest.trim_start_matches(['\r', '\n']);
            let line = self.line(text.len() - raw.len());
            if record.len() == header.len() {
                self.row(Place::Line(line), columns.map(|column| record.get(column?)));
                continue;
            }
            let is_last = reader.position().byte() == text.len() as u64;
            if is_last && raw.matches('"').count() % 2 == 1 {
                return Err(self
                    .error(format!("line {line}: a quote is never closed"))
                    .hint("close it; a quote inside a value is written `\"\"`"));
            }
            let values = if record.len() == 1 { "value" } else { "values" };
            let problem = format!("{} {values}; the header has {}", record.len(), header.len());
            self.fault(Place::Line(line), problem);
        }
        Ok(())
    }

    /// Finds the columns of name, category and status.
    fn columns(
        &mut self,
        header: &StringRecord,
        line: usize,
        first: &str,
    ) -> Result<[Option<usize>; 3], CliError> {
        let is_known = |name: &str| FIELDS.contains(&name) || IGNORED.contains(&name);
        let separates = |other: &char| first.contains(*other) && first.split(*other).any(is_known);
        if let (1, Some(other)) = (header.len(), [';', '|'].into_iter().find(separates)) {
            return Err(self
                .error(format!("is separated by `{other}`"))
                .hint("save it with `,` as the separator"));
        }
        let is_missing = |field: &&str| header.iter().all(|name| name != *field);
        let meant = |name: &str| similar(name, FIELDS.into_iter().filter(is_missing));
        if !header
            .iter()
            .any(|name| is_known(name) || meant(name).is_some())
        {
            return Err(self
                .error(format!(
                    "has no header: line {line} is `{}`",
                    shorten(first)
                ))
                .hint("put `name,categoryId,status` above it"));
        }
        for name in header {
            let times = header.iter().filter(|other| *other == name).count();
            if FIELDS.contains(&name) && times > 1 {
                return Err(self.error(format!("has two columns `{name}`")));
            }
            if let Some(meant) = meant(name).filter(|_| !is_known(name)) {
                let problem = format!("has an unknown column `{}`", shorten(name));
                return Err(self.error(problem).hint(format!("did you mean `{meant}`?")));
            }
            if !is_known(name) {
                self.ignore(name);
            }
        }
        if let Some(name) = [NAME, CATEGORY].iter().find(|field| is_missing(field)) {
            return Err(self
                .error(format!("has no column `{name}`"))
                .hint("add it; every pet needs a name and a category"));
        }
        Ok(FIELDS.map(|field| header.iter().position(|name| name == field)))
    }

    pub(super) fn json(&mut self, text: &str) -> Result<(), CliError> {
        let values = json_values(text.trim_end()).map_err(|error| {
            let problem = match error.is_eof() {
                true => "the JSON ends too early".to_owned(),
                false => format!("not valid JSON at column {}", error.column()),
            };
            self.error(format!("line {}: {problem}", error.line()))
                .hint("write one JSON object per line, or all in one array")
        })?;
        let start = |value: &&RawValue| value.get().as_ptr() as usize - text.as_ptr() as usize;
        let lines: Vec<_> = values.iter().map(|value| self.line(start(value))).collect();
        let have_own_lines = lines.is_sorted_by(|before, after| before < after);
        for (row, (value, line)) in (1..).zip(values.into_iter().map(RawValue::get).zip(lines)) {
            let place = if have_own_lines {
                Place::Line(line)
            } else {
                Place::Row(row)
            };
            match serde_json::from_str::<Object<'_>>(value) {
                Ok(object) => self.object(place, &object),
                Err(_) if !value.starts_with('{') => {
                    self.fault(place, format!("`{}` is not an object", shorten(value)));
                }
                Err(error) if error.is_data() => self.fault(place, "a field is repeated"),
                Err(_) => self.fault(place, "a number is too large, or a text is not Unicode"),
            }
        }
        Ok(())
    }

    fn object(&mut self, place: Place, object: &Object<'_>) {
        for other in object.others.keys() {
            match similar(other, FIELDS).filter(|_| !IGNORED.contains(&other.as_str())) {
                Some(meant) => {
                    let problem = format!("unknown; did you mean `{meant}`?");
                    self.field::<()>(place, &shorten(other), Err(problem));
                }
                None => self.ignore(other),
            }
        }
        let fields = [object.name, object.category_id, object.status];
        self.row(place, fields.map(|value| value.map(RawValue::get)));
    }

    /// Checks the values of a row.
    fn row(&mut self, place: Place, [name, category, status]: [Option<&str>; 3]) {
        let is_json = self.is_json;
        let text = |raw: &str| match is_json {
            true => {
                serde_json::from_str(raw).map_err(|_| format!("`{}` is not text", shorten(raw)))
            }
            false => Ok(raw.to_owned()),
        };
        let number = |raw: &str| {
            raw.parse()
                .map_err(|_| format!("`{}` is not a whole number", shorten(raw)))
        };
        let known = |text: String| match PetStatus::from(&*text) {
            status if status.is_known() => Ok(status),
            _ => Err(format!(
                "`{}` is not available, pending or sold",
                shorten(&text)
            )),
        };
        let missing = || "missing".to_owned();
        let is_filled = |cell: &&str| !cell.is_empty();
        let name = self.field(place, NAME, name.ok_or_else(missing).and_then(text));
        let category = category
            .filter(is_filled)
            .ok_or_else(missing)
            .and_then(number);
        let category = self.field(place, CATEGORY, category);
        let status = status
            .filter(is_filled)
            .map(|raw| text(raw).and_then(known))
            .transpose();
        let status = self.field(place, STATUS, status);
        if let (Some(name), Some(category), Some(status)) = (name, category, status) {
            let mut pet = NewPet::new(name, category);
            pet.status = status;
            self.rows.push(Row { place, pet });
        }
    }

    /// Returns the value of a field, or records its error.
    fn field<T>(&mut self, place: Place, field: &str, value: Result<T, String>) -> Option<T> {
        let fault = |problem| {
            let faults = self.faults.entry(place).or_default();
            faults.push(format!("{place}, {field}: {problem}"));
        };
        value.map_err(fault).ok()
    }

    pub(super) fn finish(self) -> Result<Self, CliError> {
        let name = self.name;
        let message = match self.faults.len() {
            0 => return Ok(self),
            1 => format!("1 row of {name} is invalid; nothing was sent"),
            rows => format!("{rows} rows of {name} are invalid; nothing was sent"),
        };
        let all: Vec<_> = self.faults.into_values().flatten().collect();
        let mut list = all.clone();
        if all.len() > MAX_LISTED {
            list.truncate(MAX_LISTED);
            list.push(format!(
                "{} more; --error-format json lists all",
                all.len() - MAX_LISTED
            ));
        }
        let mut error = CliError::new(Kind::Input, message).list(list);
        if let CliError::Failure(failure) = &mut error {
            failure.fields.insert("rows".to_owned(), all.into());
        }
        Err(error.hint("correct the input and run the command again"))
    }
}

/// Returns the start of a value, for a message.
fn shorten(text: &str) -> String {
    let cut: String = text.chars().take(MAX_SHOWN).collect();
    if cut.len() < text.len() {
        cut + "…"
    } else {
        cut
    }
}
