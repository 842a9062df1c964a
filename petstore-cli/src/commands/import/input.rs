//! Reads pets: CSV with a header, or JSON objects, one per line or in an array. `checker` checks
//! the rows. Writes selected rows with one more column.

#[cfg(test)]
mod tests;

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
use crate::error::{CliError, Invalid, Result};
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

    /// read a field from a CSV column with another name
    #[arg(long, value_name = "COLUMN=FIELD", value_parser = parse::<Mapping>)]
    map: Vec<Mapping>,

    /// separator: a character or tab [default: , or tab]
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
    ) -> Result<Vec<Input>> {
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
    pub(crate) fn read(name: String, bytes: Vec<u8>) -> Result<Self> {
        Self::read_as(name, bytes, Format::default())
    }

    fn read_as(name: String, bytes: Vec<u8>, format: Format<'_>) -> Result<Self> {
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
        let mut checker = Checker::new(&name, lines, format.map);
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
    ) -> Result<Vec<u8>> {
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
