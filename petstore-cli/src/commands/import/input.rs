//! Reads an input as rows: CSV with a header, or JSON objects, one per line or in an array. The
//! content decides which. All rows are checked, and everything wrong is reported at once.

use std::fmt;
use std::ops::Range;

use csv::{ByteRecord, ReaderBuilder};
use petstore_client::{NewPet, PetStatus};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::error::{CliError, Kind};
use crate::suggest::similar;

/// So many invalid rows are listed.
const MAX_LISTED: usize = 20;
/// So much of a value is repeated in a message.
const MAX_SHOWN: usize = 40;

const NAME: &str = "name";
const CATEGORY: &str = "categoryId";
const STATUS: &str = "status";
const FIELDS: [&str; 3] = [NAME, CATEGORY, STATUS];
/// What an export, or the rejects of an import, have besides: the service assigns new ids.
const IGNORED: [&str; 2] = ["id", "reason"];
const STATUSES: [&str; 3] = ["available", "pending", "sold"];

/// How the rows are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputFormat {
    Json,
    /// Separated values below a header, of which these are the bytes.
    Csv {
        delimiter: u8,
        header: Range<usize>,
    },
}

/// A pet to create, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The line that it begins on, from 1.
    pub(crate) line: usize,
    /// Its bytes in the input.
    pub(crate) span: Range<usize>,
    pub(crate) pet: NewPet,
}

impl Row {
    /// Returns a digest of what is sent, by which a changed row is noticed.
    pub(crate) fn digest(&self) -> u64 {
        let NewPet { name, category_id, status, .. } = &self.pet;
        let status = status.as_ref().map_or("", PetStatus::as_str);
        let digest = Sha256::digest(format!("{category_id} {status} {name}"));
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// An input without faults.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rows {
    pub(crate) layout: InputFormat,
    pub(crate) rows: Vec<Row>,
    /// Columns or fields that are not sent.
    pub(crate) ignored: Vec<String>,
}

/// What is wrong with a row.
struct Fault {
    line: usize,
    field: String,
    problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if !self.field.is_empty() {
            write!(f, ", {}", self.field)?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// An input that is being read.
struct Reader<'t> {
    name: &'t str,
    text: &'t str,
    /// Where the lines begin.
    lines: Vec<usize>,
    rows: Vec<Row>,
    faults: Vec<Fault>,
    ignored: Vec<String>,
}

/// Reads an input; messages call it by its name.
pub(crate) fn read(input: &[u8], name: &str) -> Result<Rows, CliError> {
    let text = std::str::from_utf8(input).map_err(|error| {
        let before = input.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        CliError::new(Kind::Input, format!("{name} line {line} is not UTF-8"))
            .hint(format!("`iconv -f latin1 -t utf-8 {name} > utf8-{name}`"))
    })?;
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
    let (rows, faults, ignored) = (Vec::new(), Vec::new(), Vec::new());
    let mut reader = Reader { name, text, lines, rows, faults, ignored };
    let start = text.len() - text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).len();
    let layout = match text.as_bytes().get(start) {
        Some(b'[') => reader.json_array(start)?,
        Some(b'{') => reader.json_objects(start)?,
        _ => reader.csv(start)?,
    };
    let Reader { rows, faults, ignored, .. } = reader;
    if faults.is_empty() {
        return Ok(Rows { layout, rows, ignored });
    }
    let mut invalid: Vec<_> = faults.iter().map(|fault| fault.line).collect();
    invalid.dedup();
    let (count, is) = (invalid.len(), if invalid.len() == 1 { "row" } else { "rows" });
    let verb = if count == 1 { "is" } else { "are" };
    let mut list: Vec<_> = faults.iter().take(MAX_LISTED).map(ToString::to_string).collect();
    if faults.len() > MAX_LISTED {
        let more = faults.len() - MAX_LISTED;
        list.push(format!("{more} more; --error-format json lists all"));
    }
    let message = format!("{count} {is} of {name} {verb} invalid; nothing was sent");
    let mut error = CliError::new(Kind::Input, message).list(list);
    if let CliError::Failure(failure) = &mut error {
        let all: Vec<_> = faults.iter().map(ToString::to_string).collect();
        failure.fields.insert("rows".to_owned(), all.into());
    }
    Err(error.hint("correct them and run the command again"))
}

impl<'t> Reader<'t> {
    /// Returns the line of a byte, from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    fn error(&self, problem: impl fmt::Display) -> CliError {
        CliError::new(Kind::Input, format!("{} {problem}", self.name))
    }

    fn ignore(&mut self, name: &str) {
        if !IGNORED.contains(&name) && !self.ignored.iter().any(|known| known == name) {
            self.ignored.push(name.to_owned());
        }
    }

    fn csv(&mut self, start: usize) -> Result<InputFormat, CliError> {
        let text = self.text;
        let part = text.get(start..).unwrap_or_default();
        let first = part.lines().next().unwrap_or_default();
        let delimiter = if first.contains('\t') && !first.contains(',') { b'\t' } else { b',' };
        let mut reader =
            ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(part.as_bytes());
        let byte = |at: u64| start + usize::try_from(at).unwrap_or(usize::MAX - start);
        let unreadable = |error: csv::Error| CliError::new(Kind::Input, error.to_string());
        let header = reader.headers().map_err(unreadable)?.clone();
        let header_end = trimmed(text, start, byte(reader.position().byte()));
        let layout = InputFormat::Csv { delimiter, header: start..header_end };
        if part.is_empty() {
            return Ok(layout);
        }
        let columns = self.columns(&header, first, start)?;
        let mut record = ByteRecord::new();
        while reader.read_byte_record(&mut record).map_err(unreadable)? {
            let begins = record.position().map_or(0, |position| byte(position.byte()));
            // The reader's position may stand before the line breaks that it skipped.
            let blank = text.get(begins..).unwrap_or_default();
            let begins = begins + blank.len() - blank.trim_start_matches(['\r', '\n']).len();
            let ends = trimmed(text, begins, byte(reader.position().byte()));
            let line = self.line(begins);
            if record.len() == header.len() {
                self.csv_row(&record, columns, line, begins..ends);
                continue;
            }
            let raw = text.get(begins..ends).unwrap_or_default();
            if ends >= text.trim_end().len() && raw.matches('"').count() % 2 == 1 {
                return Err(self
                    .error(format!("line {line}: a quote is never closed"))
                    .hint("close it; a quote inside a value is written `\"\"`"));
            }
            let (values, headers) = (record.len(), header.len());
            let problem = match values {
                1 => format!("1 value; the header has {headers}"),
                values => format!("{values} values; the header has {headers}"),
            };
            self.faults.push(Fault { line, field: String::new(), problem });
        }
        Ok(layout)
    }

    /// Finds the columns of name, category and status.
    fn columns(
        &mut self,
        header: &csv::StringRecord,
        first: &str,
        start: usize,
    ) -> Result<[Option<usize>; 3], CliError> {
        let is_known = |name: &str| FIELDS.contains(&name) || IGNORED.contains(&name);
        if header.len() == 1 && first.split(';').any(is_known) && first.contains(';') {
            return Err(self
                .error("is separated by `;`")
                .hint("save it with `,` as the separator"));
        }
        let meant = |name: &str| {
            let missing =
                FIELDS.into_iter().filter(|field| header.iter().all(|name| name != *field));
            similar(name, missing)
        };
        if !header.iter().any(|name| is_known(name) || meant(name).is_some()) {
            let (line, shown) = (self.line(start), shorten(first));
            return Err(self
                .error(format!("has no header: line {line} is `{shown}`"))
                .hint("put `name,categoryId,status` above it"));
        }
        let mut columns = [None; 3];
        for (place, name) in header.iter().enumerate() {
            match FIELDS.iter().position(|field| *field == name) {
                Some(field) if columns[field].replace(place).is_some() => {
                    return Err(self.error(format!("has two columns `{name}`")));
                }
                Some(_) => {}
                None => match meant(name).filter(|_| !IGNORED.contains(&name)) {
                    Some(meant) => {
                        let problem = format!("has an unknown column `{}`", shorten(name));
                        return Err(self.error(problem).hint(format!("did you mean `{meant}`?")));
                    }
                    None => self.ignore(name),
                },
            }
        }
        match [NAME, CATEGORY].into_iter().zip(columns).find(|(_, column)| column.is_none()) {
            None => Ok(columns),
            Some((name, _)) => Err(self
                .error(format!("has no column `{name}`"))
                .hint("add it; every pet needs a name and a category")),
        }
    }

    fn csv_row(
        &mut self,
        record: &ByteRecord,
        columns: [Option<usize>; 3],
        line: usize,
        span: Range<usize>,
    ) {
        // All of the input is UTF-8, and a quote or a comma splits no character.
        let cell = |column: Option<usize>| std::str::from_utf8(record.get(column?)?).ok();
        let [name, category_cell, status_cell] = columns.map(cell);
        let mut fault = |field: &str, problem| {
            self.faults.push(Fault { line, field: field.to_owned(), problem });
        };
        let id = category(category_cell.unwrap_or_default());
        let id = id.map_err(|problem| fault(CATEGORY, problem)).ok();
        let status = match status_cell.filter(|text| !text.is_empty()) {
            Some(text) => match status(text) {
                Ok(status) => Some(status),
                Err(problem) => return fault(STATUS, problem),
            },
            None => None,
        };
        if let Some(id) = id {
            let mut pet = NewPet::new(name.unwrap_or_default(), id);
            pet.status = status;
            self.rows.push(Row { line, span, pet });
        }
    }

    fn json_array(&mut self, start: usize) -> Result<InputFormat, CliError> {
        let part = self.text.get(start..).unwrap_or_default();
        let values = serde_json::from_str::<Vec<&RawValue>>(part);
        for value in values.map_err(|error| self.not_json(start, &error))? {
            self.json_row(value.get());
        }
        Ok(InputFormat::Json)
    }

    /// Reads objects: one on each line, or a single one over several.
    fn json_objects(&mut self, start: usize) -> Result<InputFormat, CliError> {
        let part = self.text.get(start..).unwrap_or_default();
        let first = part.lines().next().unwrap_or_default();
        if serde_json::from_str::<&RawValue>(first).is_err()
            && let Ok(whole) = serde_json::from_str::<&RawValue>(part)
        {
            self.json_row(whole.get());
            return Ok(InputFormat::Json);
        }
        for line in part.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let value = serde_json::from_str::<&RawValue>(line);
            let value = value.map_err(|error| self.not_json(self.offset(line), &error))?;
            self.json_row(value.get());
        }
        Ok(InputFormat::Json)
    }

    fn not_json(&self, start: usize, error: &serde_json::Error) -> CliError {
        let line = self.line(start) + error.line().saturating_sub(1);
        let problem = match error.is_eof() {
            true => "the JSON ends too early".to_owned(),
            false => format!("not valid JSON at column {}", error.column()),
        };
        self.error(format!("line {line}: {problem}"))
            .hint("write one JSON object per line, or all in one array")
    }

    /// Returns where a part of the text begins.
    fn offset(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    fn json_row(&mut self, value: &'t str) {
        let start = self.offset(value);
        let before = self.faults.len();
        let Ok(Fields(fields)) = serde_json::from_str::<Fields<'t>>(value) else {
            let problem = format!("{} is not an object", json_kind(value));
            let line = self.line(start);
            return self.faults.push(Fault { line, field: String::new(), problem });
        };
        let (mut name, mut id, mut pet_status) = (None, None, None);
        let mut seen: Vec<String> = Vec::with_capacity(4);
        for (field, raw) in fields {
            let part = raw.get();
            let result = match field.as_str() {
                known if seen.iter().any(|one| one == known) => Err("repeated".to_owned()),
                NAME => text(part).map(|text| name = Some(text)),
                CATEGORY => category(part).map(|number| id = Some(number)),
                STATUS if part == "null" => Ok(()),
                STATUS => {
                    text(part).and_then(|text| status(&text)).map(|one| pet_status = Some(one))
                }
                other if IGNORED.contains(&other) => Ok(()),
                other => match similar(other, FIELDS) {
                    Some(meant) => Err(format!("unknown; did you mean `{meant}`?")),
                    None => {
                        self.ignore(other);
                        Ok(())
                    }
                },
            };
            if let Err(problem) = result {
                let line = self.line(self.offset(part));
                self.faults.push(Fault { line, field: shorten(&field), problem });
            }
            seen.push(field);
        }
        for field in [NAME, CATEGORY] {
            if !seen.iter().any(|one| one == field) {
                let (line, problem) = (self.line(start), "missing".to_owned());
                self.faults.push(Fault { line, field: field.to_owned(), problem });
            }
        }
        if let (Some(name), Some(id), true) = (name, id, self.faults.len() == before) {
            let mut pet = NewPet::new(name, id);
            pet.status = pet_status;
            self.rows.push(Row { line: self.line(start), span: start..start + value.len(), pet });
        }
    }
}

fn category(text: &str) -> Result<i64, String> {
    match text {
        "" => Err("missing".to_owned()),
        text => text.parse().map_err(|_| format!("`{}` is not a whole number", shorten(text))),
    }
}

fn status(text: &str) -> Result<PetStatus, String> {
    if STATUSES.contains(&text) {
        return Ok(PetStatus::from(text));
    }
    Err(format!("`{}` is not available, pending or sold", shorten(text)))
}

fn text(raw: &str) -> Result<String, String> {
    serde_json::from_str(raw).map_err(|_| format!("{} is not text", json_kind(raw)))
}

fn json_kind(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "text",
        Some(b'n') => "null",
        Some(b't' | b'f') => "true or false",
        _ => "a number",
    }
}

/// Returns a value for a message.
fn shorten(text: &str) -> String {
    let cut: String = text.chars().take(MAX_SHOWN).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}

/// Returns where a record ends, its line break left out.
fn trimmed(text: &str, begins: usize, ends: usize) -> usize {
    let record = text.get(begins..ends).unwrap_or_default();
    begins + record.trim_end_matches(['\r', '\n']).len()
}

/// The fields of an object, in their order, repeated ones included.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collector;

        impl<'de> Visitor<'de> for Collector {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(4);
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Collector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pets(input: &str) -> Vec<NewPet> {
        let rows = read(input.as_bytes(), "pets").unwrap();
        rows.rows.into_iter().map(|row| row.pet).collect()
    }

    fn message(input: &[u8]) -> String {
        let CliError::Failure(failure) = read(input, "pets.csv").unwrap_err() else { panic!() };
        [vec![failure.message], failure.list].concat().join(" | ")
    }

    fn three() -> Vec<NewPet> {
        vec![
            NewPet::new("Rex", 7).with_status(PetStatus::Sold),
            NewPet::new("", -1),
            NewPet::new("a,\"b\"\nc", i64::MAX),
        ]
    }

    #[test]
    fn reads_the_same_pets_from_every_format() {
        let ndjson = concat!(
            "\u{feff}{\"id\":1,\"name\":\"Rex\",\"categoryId\":7,\"status\":\"sold\"}\r\n\n",
            "{\"name\":\"\",\"categoryId\":-1,\"status\":null}\n",
            "{\"categoryId\":9223372036854775807,\"name\":\"a,\\\"b\\\"\\nc\"}",
        );
        assert_eq!(pets(ndjson), three());
        let lines: Vec<_> =
            ndjson.trim_start_matches('\u{feff}').lines().filter(|l| !l.is_empty()).collect();
        assert_eq!(pets(&format!("[{}]", lines.join(",\n"))), three());
        let csv = "id,name,categoryId,status\n1,Rex,7,sold\n2,,-1,\n,\"a,\"\"b\"\"\nc\",9223372036854775807,\n";
        assert_eq!(pets(csv), three());
        assert_eq!(pets("name\tcategoryId\nRex\t7\n"), [NewPet::new("Rex", 7)]);
        assert_eq!(
            pets("{\n \"name\": \"Rex\",\n \"categoryId\": 7\n}\n"),
            [NewPet::new("Rex", 7)]
        );
        for empty in ["", "\n", "[]", " [ ]\n", "name,categoryId\n"] {
            assert_eq!(pets(empty), [], "{empty:?}");
        }
    }

    #[test]
    fn keeps_the_line_and_the_bytes_of_each_row() {
        let csv = "name,categoryId\n\"R\nex\",7\nB,8\n";
        let rows = read(csv.as_bytes(), "pets").unwrap().rows;
        let rows: Vec<_> = rows.iter().map(|row| (row.line, &csv[row.span.clone()])).collect();
        assert_eq!(rows, [(2, "\"R\nex\",7"), (4, "B,8")]);
        let ndjson = "\n{\"name\":\"a\",\"categoryId\":1} \n";
        let rows = read(ndjson.as_bytes(), "pets").unwrap().rows;
        assert_eq!(rows[0].line, 2);
        assert_eq!(&ndjson[rows[0].span.clone()], "{\"name\":\"a\",\"categoryId\":1}");
    }

    #[test]
    fn reports_every_invalid_row_at_once() {
        let ndjson = "{\"name\":1,\"categoryId\":7.5}\n{\"nmae\":\"a\",\"categoryId\":1,\"status\":\"slod\"}\n[]\n";
        assert_eq!(
            message(ndjson.as_bytes()),
            "3 rows of pets.csv are invalid; nothing was sent | line 1, name: a number is not text \
             | line 1, categoryId: `7.5` is not a whole number | line 2, nmae: unknown; did you mean \
             `name`? | line 2, status: `slod` is not available, pending or sold | line 2, name: \
             missing | line 3: a list is not an object"
        );
        assert_eq!(
            message(b"name,categoryId,status\na,x,sold\nb\nc,1,gone\n"),
            "3 rows of pets.csv are invalid; nothing was sent | line 2, categoryId: `x` is not a \
             whole number | line 3: 1 value; the header has 3 | line 4, status: `gone` is not \
             available, pending or sold"
        );
    }

    #[test]
    fn names_what_is_wrong_with_the_whole_input() {
        for (input, expected) in [
            ("name;categoryId;status\nRex;7;\n", "is separated by `;`"),
            ("Rex,7,available\nTom,8,sold\n", "has no header: line 1 is `Rex,7,available`"),
            ("name,status\nRex,sold\n", "has no column `categoryId`"),
            ("name,category\nRex,7\n", "has an unknown column `category`"),
            ("name,name,categoryId\n", "has two columns `name`"),
            ("name,categoryId\na,1\n\"b,2\nc,3\n", "line 3: a quote is never closed"),
            (
                "{\"name\":\"a\",\"categoryId\":1}\n{\"name\"}\n",
                "line 2: not valid JSON at column 8",
            ),
            ("[{\"name\":\"a\",\"categoryId\":1},\n 7, {]", "line 2: not valid JSON at column 6"),
            ("{\"name\":\"a\"\n", "line 1: the JSON ends too early"),
        ] {
            assert_eq!(message(input.as_bytes()), format!("pets.csv {expected}"), "{input}");
        }
        assert_eq!(message(b"name,categoryId\n\xff,1\n"), "pets.csv line 2 is not UTF-8");
        let rows = read(b"name,categoryId,colour\nRex,7,red\n", "pets").unwrap();
        assert_eq!(rows.ignored, ["colour"]);
    }
}
