//! Reads pets: CSV with a header, or JSON objects, one per line or in an array. Checks all rows,
//! and reports all errors together. Writes selected rows with one more column.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use futures_util::StreamExt as _;
use serde_json::Value;

use super::cells::{Mapping, json_values};
use super::checker::{Checker, ValidRows};
use super::rows::Row;
use crate::context::Context;
use crate::env::Signals;
use crate::error::{CliError, Invalid, Kind};
use crate::input::input_name;
use crate::settings::parse;

/// The maximum size of an input.
const MAX_INPUT: u64 = 1 << 30;

/// The input of an import.
#[derive(Debug, clap::Args)]
pub(crate) struct InputArgs {
    #[arg(
        id = "file",
        default_value = "-",
        hide_default_value = true,
        hide = true,
        value_name = "FILE"
    )]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// column of CSV that holds a field
    #[arg(long, value_name = "COLUMN=FIELD", value_parser = parse::<Mapping>)]
    map: Vec<Mapping>,

    /// separator of CSV: a character, or tab [default: ,]
    #[arg(long, value_name = "C", value_parser = parse::<Delimiter>)]
    delimiter: Option<Delimiter>,
}

impl InputArgs {
    /// Returns whether there are several files.
    pub(super) fn has_several(&self) -> bool {
        self.files.len() > 1
    }

    /// Reads and checks all files.
    pub(super) async fn read(
        &self,
        context: &mut Context,
        signals: &mut Signals,
    ) -> Result<Vec<Input>, CliError> {
        let mut inputs = Vec::new();
        for file in &self.files {
            let bytes = tokio::select! {
                biased;
                Some(signal) = signals.next() => return Err(signal.into()),
                bytes = context.reader().read(file, "pets", MAX_INPUT) => bytes?,
            };
            let format = Format {
                map: &self.map,
                delimiter: self.delimiter.map(|delimiter| delimiter.0),
            };
            let input = Input::read_as(input_name(file), bytes, format)?;
            input.report(context);
            inputs.push(Input {
                file: file.is_file().then(|| file.clone()),
                is_stdin: file == Path::new("-"),
                ..input
            });
        }
        Ok(inputs)
    }
}

/// The separator of CSV.
#[derive(Debug, Clone, Copy)]
struct Delimiter(u8);

impl FromStr for Delimiter {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(Self(b'\t')),
            [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(Self(*byte)),
            _ => Err(Invalid::new("is not one ASCII character, or `tab`")),
        }
    }
}

/// How an input is to be read.
#[derive(Debug, Default, Clone, Copy)]
struct Format<'a> {
    map: &'a [Mapping],
    /// The separator of CSV. If none is given, the content decides.
    delimiter: Option<u8>,
}

/// A valid input.
#[derive(Debug)]
pub(crate) struct Input {
    /// The name of the input in messages.
    name: String,
    /// The file, if it can be read again.
    file: Option<PathBuf>,
    is_stdin: bool,
    rows: Vec<Row>,
    /// Columns or fields that are ignored.
    ignored: Vec<String>,
    /// The statuses of exported rows that the specification does not list.
    statuses: Vec<String>,
    text: String,
    /// The separator of CSV; `None` for JSON.
    delimiter: Option<u8>,
}

impl Input {
    pub(crate) fn read(name: String, bytes: Vec<u8>) -> Result<Self, CliError> {
        Self::read_as(name, bytes, Format::default())
    }

    fn read_as(name: String, bytes: Vec<u8>, format: Format<'_>) -> Result<Self, CliError> {
        refuse_binary(&name, &bytes)?;
        let text = String::from_utf8(bytes).map_err(|error| not_utf8(&name, &error))?;
        let content = without_mark(&text);
        // Some old programs end lines with CR only.
        let end = if content.contains('\n') { '\n' } else { '\r' };
        let breaks = content.match_indices(end).map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        let start = content.trim_start();
        let first = start.split(['\r', '\n']).next().unwrap_or_default();
        let delimiter = match first.bytes().next() {
            _ if format.delimiter.is_some() => format.delimiter,
            Some(b'{' | b'[') => None,
            _ if first.contains('\t') && !first.contains(',') => Some(b'\t'),
            _ => Some(b','),
        };
        let is_json = delimiter.is_none();
        if is_json && !format.map.is_empty() {
            let problem = format!("`--map` applies to CSV, and {name} is JSON");
            return Err(CliError::usage(problem));
        }
        let mut checker = Checker::new(&name, lines, is_json, format.map);
        match delimiter {
            Some(delimiter) => checker.csv(content, delimiter, first)?,
            None => checker.json(content)?,
        }
        let ValidRows {
            rows,
            ignored,
            statuses,
        } = checker.finish()?;
        Ok(Self {
            name,
            file: None,
            is_stdin: false,
            rows,
            ignored,
            statuses: statuses.into_iter().collect(),
            text,
            delimiter,
        })
    }

    /// Returns the name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the file, if it can be read again.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Describes an input that is not a file.
    pub(super) fn kind(&self) -> &'static str {
        if self.is_stdin {
            "standard input"
        } else {
            "a pipe"
        }
    }

    /// Reports columns that are ignored, and statuses that the service may refuse.
    fn report(&self, context: &Context) {
        for column in &self.ignored {
            let text = format!("ignoring `{column}`, which is not a field of a pet");
            context.ui().warning(&text, None);
        }
        for status in &self.statuses {
            let text = format!("the specification does not list the status `{status}`");
            context.ui().warning(&text, None);
        }
    }

    /// Returns the rows that have a value, with this value in one more column, so that they can be
    /// corrected and imported. The format is CSV if the input is CSV, and else one JSON object per
    /// line.
    pub(super) fn with_column(
        &self,
        name: &str,
        values: &BTreeMap<usize, Value>,
    ) -> Result<Vec<u8>, CliError> {
        match self.delimiter {
            None => self.json_with_column(name, values),
            Some(delimiter) => self.csv_with_column(name, values, delimiter),
        }
    }

    fn json_with_column(
        &self,
        name: &str,
        values: &BTreeMap<usize, Value>,
    ) -> Result<Vec<u8>, CliError> {
        let objects = json_values(without_mark(&self.text)).map_err(CliError::internal)?;
        let mut text = String::new();
        for (row, value) in values {
            let object = objects[*row].get();
            let object = object.strip_suffix('}').unwrap_or(object).trim_end();
            // A line break between fields is white space.
            let object = object.replace(['\n', '\r'], " ");
            text += &format!("{object},\"{name}\":{value}}}\n");
        }
        Ok(text.into_bytes())
    }

    fn csv_with_column(
        &self,
        name: &str,
        values: &BTreeMap<usize, Value>,
        delimiter: u8,
    ) -> Result<Vec<u8>, CliError> {
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .from_reader(without_mark(&self.text).as_bytes());
        let mut writer = WriterBuilder::new()
            .delimiter(delimiter)
            .from_writer(Vec::new());
        let header = reader.headers().map_err(CliError::internal)?.clone();
        let mut write = |record: &StringRecord, last: &str| {
            writer
                .write_record(record.iter().chain([last]))
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

/// Refuses a compressed file, and a file that begins with zeros. They are no text.
fn refuse_binary(name: &str, bytes: &[u8]) -> Result<(), CliError> {
    let program = match bytes {
        [0x1f, 0x8b, ..] => "gunzip",
        [b'P', b'K', 3, 4, ..] => "unzip",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "unzstd",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "unxz",
        [0, ..] => {
            let problem = format!("{name} is not text: it begins with a zero byte");
            return Err(CliError::new(Kind::Input, problem));
        }
        _ => return Ok(()),
    };
    let problem = format!("{name} is compressed");
    Err(CliError::new(Kind::Input, problem).hint(format!("`{program}` unpacks it")))
}

fn not_utf8(name: &str, error: &std::string::FromUtf8Error) -> CliError {
    let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
    let encoding = match error.as_bytes() {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "utf-16",
        _ => "latin1",
    };
    CliError::new(Kind::Input, format!("{name} line {line} is not UTF-8"))
        .hint(format!("`iconv -f {encoding} -t utf-8` converts it"))
}

/// Returns the text without a byte order mark.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use petstore_client::{NewPet, PetStatus};

    use super::super::rows::Place;
    use super::*;

    fn read(text: &str) -> Input {
        Input::read("pets".to_owned(), text.as_bytes().to_vec()).unwrap()
    }

    fn pets(text: &str) -> Vec<NewPet> {
        read(text)
            .rows
            .into_iter()
            .map(|row| row.pet().clone())
            .collect()
    }

    fn message(input: &[u8]) -> String {
        let error = Input::read("pets.csv".to_owned(), input.to_vec()).unwrap_err();
        let CliError::Failure(failure) = error else {
            panic!()
        };
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
        let lines: Vec<_> = ndjson
            .trim_start_matches('\u{feff}')
            .lines()
            .filter(|l| !l.is_empty())
            .collect();
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
            (
                "\n{\"name\":\"a\",\"categoryId\":1} \n\n{\"name\":\"b\",\"categoryId\":1}",
                [2, 4],
            ),
        ] {
            let rows: Vec<_> = read(text).rows.iter().map(Row::place).collect();
            assert_eq!(rows, lines.map(Place::Line), "{text}");
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
        assert_eq!(
            message(br#"[{"name":"a","categoryId":1},{"name":2,"categoryId":1},{"name":"c"}]"#),
            "2 rows of pets.csv are invalid; nothing was sent | row 2, name: `2` is not text | row 3, \
             categoryId: missing"
        );
    }

    #[test]
    fn counts_lines_that_end_with_a_carriage_return_alone() {
        let expected = "1 row of pets.csv is invalid; nothing was sent | line 3, categoryId: `x` is \
                        not a whole number";
        for end in ["\r", "\r\n", "\n"] {
            let text = ["name,categoryId", "Rex,7", "Tom,x", ""].join(end);
            assert_eq!(message(text.as_bytes()), expected, "{end:?}");
        }
    }

    #[test]
    fn names_errors_of_the_whole_input() {
        for (input, expected) in [
            ("name;categoryId;status\nRex;7;\n", "is separated by `;`"),
            ("name|categoryId\nRex|7\n", "is separated by `|`"),
            ("\rRex,7\rTom,8\r", "has no header: line 2 is `Rex,7`"),
            (
                "Rex,7,available\nTom,8,sold\n",
                "has no header: line 1 is `Rex,7,available`",
            ),
            ("name,status\nRex,sold\n", "has no column `categoryId`"),
            ("name,category\nRex,7\n", "has an unknown column `category`"),
            ("name,name,categoryId\n", "has two columns `name`"),
            (
                "name,categoryId\na,1\n\"b,2\nc,3\n",
                "line 3: a quote is never closed",
            ),
            (
                "{\"name\":\"a\",\"categoryId\":1}\n{\"name\"}\n",
                "line 2: not valid JSON at column 8",
            ),
            (
                "[{\"name\":\"a\",\"categoryId\":1},\n 7, {]",
                "line 2: not valid JSON at column 6",
            ),
            ("{\"name\":\"a\"\n", "line 1: the JSON ends too early"),
        ] {
            assert_eq!(
                message(input.as_bytes()),
                format!("pets.csv {expected}"),
                "{input}"
            );
        }
        for (input, line, encoding) in [
            (&b"name,categoryId\n\xff,1\n"[..], 2, "latin1"),
            (b"\xff\xfen\0", 1, "utf-16"),
        ] {
            let error = Input::read("a.csv".to_owned(), input.to_vec()).unwrap_err();
            let CliError::Failure(failure) = error else {
                panic!()
            };
            assert_eq!(failure.message, format!("a.csv line {line} is not UTF-8"));
            let hint = format!("`iconv -f {encoding} -t utf-8` converts it");
            assert_eq!(failure.hint, Some(hint));
        }
        assert_eq!(
            read("name,categoryId,colour\nRex,7,red\n").ignored,
            ["colour"]
        );
    }

    #[test]
    fn rows_are_written_with_a_reason_and_can_be_read_again() {
        let rejected = |text: &str, rows: &[usize]| {
            let reasons = rows
                .iter()
                .map(|row| (*row, Value::from("400: \"no\", it said")))
                .collect();
            String::from_utf8(read(text).with_column("reason", &reasons).unwrap()).unwrap()
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
        assert!(
            out.lines().count() == 2 && out.trim_end().ends_with(chip),
            "{out}"
        );
        assert_eq!(pets(&out), pets(json));
    }
}
