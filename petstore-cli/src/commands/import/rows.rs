<<<<<<< o1
//! Reads pets: CSV with a header, or JSON objects, one per line or in an array. Checks all rows,
//! and reports all errors together. Writes selected rows with reasons.
=======
//! Checks the rows of an input, and reports all errors together.
>>>>>>> t1

use std::collections::BTreeMap;
use std::fmt::Display;

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

/// A pet to create.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The line on which it starts, from 1.
    pub(crate) line: usize,
    pub(crate) pet: NewPet,
}

impl Row {
    /// Returns a checksum of the sent content, which detects changed rows.
    pub(crate) fn digest(&self) -> u32 {
        crc32fast::hash(&serde_json::to_vec(&self.pet).unwrap_or_default())
    }
}

<<<<<<< o1
/// A valid input.
#[derive(Debug)]
pub(crate) struct Input {
    /// The name of the input in messages.
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
    /// Columns or fields that are ignored.
    pub(crate) ignored: Vec<String>,
    text: String,
    /// The separator of CSV; `None` for JSON.
    delimiter: Option<u8>,
}

impl Input {
    pub(crate) fn read(name: String, bytes: Vec<u8>) -> Result<Self, CliError> {
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            CliError::new(Kind::Input, format!("{name} line {line} is not UTF-8"))
                .hint(format!("`iconv -f latin1 -t utf-8 {name} > utf8-{name}`"))
        })?;
        let content = without_mark(&text);
        let breaks = content.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        let first = content.trim_start().lines().next().unwrap_or_default();
        let delimiter = match first.bytes().next() {
            Some(b'{' | b'[') => None,
            _ if first.contains('\t') && !first.contains(',') => Some(b'\t'),
            _ => Some(b','),
        };
        let is_json = delimiter.is_none();
        let mut checker = Checker { name: &name, lines, is_json, ..Checker::default() };
        match delimiter {
            Some(delimiter) => checker.csv(content, delimiter, first)?,
            None => checker.json(content)?,
        }
        let Checker { rows, ignored, .. } = checker.finish()?;
        Ok(Self { name, rows, ignored, text, delimiter })
    }

    /// Returns rows of the input with reasons, so that they can be corrected and imported: CSV if
    /// the input is CSV, else one JSON object per line.
    pub(crate) fn with_reasons(
        &self,
        reasons: &BTreeMap<usize, &str>,
    ) -> Result<Vec<u8>, CliError> {
        let content = without_mark(&self.text);
        let Some(delimiter) = self.delimiter else {
            let values = json_values(content).map_err(CliError::internal)?;
            let line = |(row, reason): (&usize, &&str)| {
                let object = values[*row].get();
                let object = object.strip_suffix('}').unwrap_or(object).trim_end();
                let reason = serde_json::Value::from(*reason);
                // A line break between fields is white space.
                let object = object.replace(['\n', '\r'], " ");
                format!("{object},\"reason\":{reason}}}\n")
            };
            return Ok(reasons.iter().map(line).collect::<String>().into_bytes());
        };
        let mut reader = ReaderBuilder::new().delimiter(delimiter).from_reader(content.as_bytes());
        let mut writer = WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
        let header = reader.headers().map_err(CliError::internal)?.clone();
        let mut write = |record: &StringRecord, last: &str| {
            writer.write_record(record.iter().chain([last])).map_err(CliError::internal)
        };
        write(&header, "reason")?;
        for (row, record) in reader.records().enumerate() {
            if let Some(reason) = reasons.get(&row) {
                write(&record.map_err(CliError::internal)?, reason)?;
            }
        }
        writer.into_inner().map_err(CliError::internal)
    }
}

/// Returns the text without a byte order mark.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Splits text into JSON values: those of an array, or concatenated values.
fn json_values(text: &str) -> serde_json::Result<Vec<&RawValue>> {
=======
/// Splits text into JSON values: those of an array, or concatenated values.
pub(super) fn json_values(text: &str) -> serde_json::Result<Vec<&RawValue>> {
>>>>>>> t1
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    serde_json::Deserializer::from_str(text).into_iter().collect()
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
<<<<<<< o1
    rows: Vec<Row>,
    /// The errors, with their lines.
=======
    pub(super) rows: Vec<Row>,
    /// The errors, with their lines.
>>>>>>> t1
    faults: BTreeMap<usize, Vec<String>>,
    pub(super) ignored: Vec<String>,
}

impl<'n> Checker<'n> {
    pub(super) fn new(name: &'n str, lines: Vec<usize>, is_json: bool) -> Self {
        Self { name, lines, is_json, ..Self::default() }
    }

    fn error(&self, problem: impl Display) -> CliError {
        CliError::new(Kind::Input, format!("{} {problem}", self.name))
    }

    fn fault(&mut self, line: usize, problem: impl Display) {
        self.faults.entry(line).or_default().push(format!("line {line}: {problem}"));
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
        let mut reader = reader.delimiter(delimiter).flexible(true).from_reader(text.as_bytes());
        let unreadable = |error: csv::Error| CliError::new(Kind::Input, error.to_string());
        let header = reader.headers().map_err(unreadable)?.clone();
        if header.is_empty() {
            return Ok(());
        }
        let columns = self.columns(&header, self.line(text.find(first).unwrap_or(0)), first)?;
        let mut record = StringRecord::new();
        while reader.read_record(&mut record).map_err(unreadable)? {
            let position = record.position().map_or(0, csv::Position::byte);
            let rest = text.get(usize::try_from(position).unwrap_or(0)..).unwrap_or_default();
            // The position may be before empty lines that the reader skipped.
            let raw = rest.trim_start_matches(['\r', '\n']);
            let line = self.line(text.len() - raw.len());
            if record.len() == header.len() {
                self.row(line, columns.map(|column| record.get(column?)));
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
            self.fault(line, problem);
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
        if header.len() == 1 && first.contains(';') && first.split(';').any(is_known) {
            return Err(self
                .error("is separated by `;`")
                .hint("save it with `,` as the separator"));
        }
        let is_missing = |field: &&str| header.iter().all(|name| name != *field);
        let meant = |name: &str| similar(name, FIELDS.into_iter().filter(is_missing));
        if !header.iter().any(|name| is_known(name) || meant(name).is_some()) {
            return Err(self
                .error(format!("has no header: line {line} is `{}`", shorten(first)))
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
        for value in values.into_iter().map(RawValue::get) {
            let line = self.line(value.as_ptr() as usize - text.as_ptr() as usize);
            match serde_json::from_str::<Object<'_>>(value) {
                Ok(object) => self.object(line, &object),
                Err(_) if !value.starts_with('{') => {
                    self.fault(line, format!("`{}` is not an object", shorten(value)));
                }
                Err(error) if error.is_data() => self.fault(line, "a field is repeated"),
                Err(_) => self.fault(line, "a number is too large, or a text is not Unicode"),
            }
        }
        Ok(())
    }

    fn object(&mut self, line: usize, object: &Object<'_>) {
        for other in object.others.keys() {
            match similar(other, FIELDS).filter(|_| !IGNORED.contains(&other.as_str())) {
                Some(meant) => {
                    let problem = format!("unknown; did you mean `{meant}`?");
                    self.field::<()>(line, &shorten(other), Err(problem));
                }
                None => self.ignore(other),
            }
        }
        let fields = [object.name, object.category_id, object.status];
        self.row(line, fields.map(|value| value.map(RawValue::get)));
    }

    /// Checks the values of a row.
    fn row(&mut self, line: usize, [name, category, status]: [Option<&str>; 3]) {
        let is_json = self.is_json;
        let text = |raw: &str| match is_json {
            true => {
                serde_json::from_str(raw).map_err(|_| format!("`{}` is not text", shorten(raw)))
            }
            false => Ok(raw.to_owned()),
        };
        let number = |raw: &str| {
            raw.parse().map_err(|_| format!("`{}` is not a whole number", shorten(raw)))
        };
        let known = |text: String| match PetStatus::from(&*text) {
            status if status.is_known() => Ok(status),
            _ => Err(format!("`{}` is not available, pending or sold", shorten(&text))),
        };
        let missing = || "missing".to_owned();
        let is_filled = |cell: &&str| !cell.is_empty();
        let name = self.field(line, NAME, name.ok_or_else(missing).and_then(text));
        let category = category.filter(is_filled).ok_or_else(missing).and_then(number);
        let category = self.field(line, CATEGORY, category);
        let status = status.filter(is_filled).map(|raw| text(raw).and_then(known)).transpose();
        let status = self.field(line, STATUS, status);
        if let (Some(name), Some(category), Some(status)) = (name, category, status) {
            let mut pet = NewPet::new(name, category);
            pet.status = status;
            self.rows.push(Row { line, pet });
        }
    }

    /// Returns the value of a field, or records its error.
    fn field<T>(&mut self, line: usize, field: &str, value: Result<T, String>) -> Option<T> {
        let fault = |problem| {
            let faults = self.faults.entry(line).or_default();
            faults.push(format!("line {line}, {field}: {problem}"));
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
            list.push(format!("{} more; --error-format json lists all", all.len() - MAX_LISTED));
        }
        let mut error = CliError::new(Kind::Input, message).list(list);
        if let CliError::Failure(failure) = &mut error {
            failure.fields.insert("rows".to_owned(), all.into());
        }
        Err(error.hint("correct them and run the command again"))
    }
}

/// Returns the start of a value, for a message.
fn shorten(text: &str) -> String {
    let cut: String = text.chars().take(MAX_SHOWN).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}
<<<<<<< o1

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Input {
        Input::read("pets".to_owned(), text.as_bytes().to_vec()).unwrap()
    }

    fn pets(text: &str) -> Vec<NewPet> {
        read(text).rows.into_iter().map(|row| row.pet).collect()
    }

    fn message(input: &[u8]) -> String {
        let error = Input::read("pets.csv".to_owned(), input.to_vec()).unwrap_err();
        let CliError::Failure(failure) = error else { panic!() };
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
    fn knows_the_line_of_each_row() {
        for (text, lines) in [
            ("\nname,categoryId\r\n\"R\nex\",7\n\n\nB,8\n", [3, 7]),
            ("\n{\"name\":\"a\",\"categoryId\":1} \n\n{\"name\":\"b\",\"categoryId\":1}", [2, 4]),
        ] {
            let rows: Vec<_> = read(text).rows.iter().map(|row| row.line).collect();
            assert_eq!(rows, lines, "{text}");
        }
    }

    #[test]
    fn reports_every_invalid_row_at_once() {
        let ndjson = "{\"name\":1,\"categoryId\":7.5}\n{\"nmae\":\"a\",\"categoryId\":1,\"status\":\"slod\"}\n[]\n";
        assert_eq!(
            message(ndjson.as_bytes()),
            "3 rows of pets.csv are invalid; nothing was sent | line 1, name: `1` is not text \
             | line 1, categoryId: `7.5` is not a whole number | line 2, nmae: unknown; did you mean \
             `name`? | line 2, name: missing | line 2, status: `slod` is not available, pending or \
             sold | line 3: `[]` is not an object"
        );
        assert_eq!(
            message(b"name,categoryId,status\na,x,sold\nb\nc,1,gone\n"),
            "3 rows of pets.csv are invalid; nothing was sent | line 2, categoryId: `x` is not a \
             whole number | line 3: 1 value; the header has 3 | line 4, status: `gone` is not \
             available, pending or sold"
        );
    }

    #[test]
    fn names_errors_of_the_whole_input() {
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
        assert_eq!(read("name,categoryId,colour\nRex,7,red\n").ignored, ["colour"]);
    }

    #[test]
    fn rows_are_written_with_a_reason_and_can_be_read_again() {
        let rejected = |text: &str, rows: &[usize]| {
            let reasons = rows.iter().map(|row| (*row, "400: \"no\", it said")).collect();
            String::from_utf8(read(text).with_reasons(&reasons).unwrap()).unwrap()
        };
        let csv = "id,name,categoryId\n1,a,1\n2,\"b\nb\",2\n3,c,3";
        let out = rejected(csv, &[1, 2]);
        let reason = "\"400: \"\"no\"\", it said\"";
        let expected =
            format!("id,name,categoryId,reason\n2,\"b\nb\",2,{reason}\n3,c,3,{reason}\n");
        assert_eq!(out, expected);
        assert_eq!(pets(&out), pets(csv)[1..]);
        let json = r#"[{"name":"a",
                        "categoryId":1}, {"name":"b","categoryId":2,"chip":{"code":1.50} }]"#;
        let out = rejected(json, &[0, 1]);
        let chip = r#""chip":{"code":1.50},"reason":"400: \"no\", it said"}"#;
        assert!(out.lines().count() == 2 && out.trim_end().ends_with(chip), "{out}");
        assert_eq!(pets(&out), pets(json));
    }
}
=======
>>>>>>> t1
