//! Writes results: selects fields, applies `--jq`, and formats them.

mod column;
mod format;
mod jq;
mod printer;
mod table;

use std::borrow::Cow;
use std::io::{self, Write as _};

use serde::Serialize;
use serde_json::Value;

use self::jq::Jq;
use crate::error::{CliError, Kind, Result};
use crate::suggest::did_you_mean;

pub(crate) use self::format::OutputFormat;
pub(crate) use self::printer::Printer;

/// The records of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// The name of the records in messages.
    pub(crate) noun: &'static str,
    /// The first fields.
    pub(crate) fields: &'static [&'static str],
    /// The fields that a narrow table hides, in this order.
    pub(crate) dropped: &'static [&'static str],
    /// Fields that are written as `null` if a record lacks them.
    pub(crate) nullable: &'static [&'static str],
}

/// A result of any shape.
pub(crate) const ANY: Shape = Shape {
    noun: "the results",
    fields: &[],
    dropped: &[],
    nullable: &[],
};

/// A result in progress.
pub(crate) struct Output {
    printer: Printer,
    format: OutputFormat,
    shape: Shape,
    jq: Option<Jq>,
    /// The columns; those of the shape until the first records arrive.
    columns: Vec<String>,
    has_columns: bool,
    /// The records so far of a result that can only be written when it is complete.
    held: Vec<Value>,
    is_empty: bool,
    /// A field that appeared after the columns were fixed.
    late: Option<String>,
}

impl Output {
    /// Starts a result, without writing anything.
    ///
    /// # Errors
    ///
    /// Fails if `--jq` is invalid.
    fn new(printer: Printer, shape: Shape) -> Result<Self> {
        let jq = match &printer.jq {
            Some(code) => Some(Jq::parse(code, &printer.variables)?),
            None => None,
        };
        Ok(Self {
            format: printer.format_or_default(),
            printer,
            shape,
            jq,
            columns: shape.fields.iter().map(|&name| name.to_owned()).collect(),
            has_columns: false,
            held: Vec::new(),
            is_empty: true,
            late: None,
        })
    }

    /// Checks that a result like a sample can be written, before anything is sent. `--jq` may fail all
    /// the same.
    pub(crate) fn check(mut self, sample: &impl Serialize) -> Result<()> {
        let sample = self.json(sample)?;
        self.set_columns(std::slice::from_ref(&sample))
    }

    /// Adds records to a list. Streamed formats write them immediately.
    pub(crate) fn rows<T: Serialize>(&mut self, records: &[T]) -> Result<()> {
        let mut rows = Vec::with_capacity(records.len());
        for record in records {
            rows.push(self.json(record)?);
        }
        self.set_columns(&rows)?;
        if self.jq.is_some() || self.format == OutputFormat::Table {
            self.held.extend(rows);
            return Ok(());
        }
        rows.iter().try_for_each(|row| self.write(row))?;
        Ok(self.printer.out.flush()?)
    }

    /// Returns a record as JSON, with its nullable fields.
    fn json(&self, record: &impl Serialize) -> Result<Value> {
        let mut record = serde_json::to_value(record).map_err(CliError::internal)?;
        if let Value::Object(fields) = &mut record {
            for (at, name) in self.shape.fields.iter().enumerate() {
                if self.shape.nullable.contains(name) && !fields.contains_key(*name) {
                    fields.shift_insert(at, (*name).to_owned(), Value::Null);
                }
            }
        }
        Ok(record)
    }

    /// Ends a list, and returns a field that appeared too late for the columns.
    pub(crate) fn finish(mut self) -> Result<Option<String>> {
        let held = std::mem::take(&mut self.held);
        if let Some(jq) = self.jq.take() {
            let mut out = self.printer.out.clone();
            self.filter(&jq, Value::Array(held))?;
            out.flush()?;
            return Ok(None);
        }
        if self.is_empty {
            self.write_header()?;
        }
        match self.format {
            OutputFormat::Table => {
                let screen = &self.printer.screen;
                let text = column::table(&self.columns, &held, self.shape, screen);
                self.printer.out.write_all(text.as_bytes())?;
            }
            OutputFormat::Json => {
                self.printer
                    .out
                    .write_all(if self.is_empty { b"[]\n" } else { b"\n]\n" })?;
            }
            OutputFormat::Ndjson | OutputFormat::Csv | OutputFormat::Tsv => {}
        }
        // Notes about the result must come after it.
        self.printer.out.flush()?;
        Ok(self.late)
    }

    /// Writes one value as the whole result. An array is a list.
    pub(crate) fn document(mut self, value: &impl Serialize) -> Result<()> {
        let value = self.json(value)?;
        if let Value::Array(rows) = value {
            self.rows(&rows)?;
            return self.finish().map(drop);
        }
        if let Some(jq) = self.jq.take() {
            return self.filter(&jq, value);
        }
        self.set_columns(std::slice::from_ref(&value))?;
        let screen = &self.printer.screen;
        match self.format {
            OutputFormat::Table if value.is_object() => {
                let text = column::pairs(&self.columns, &value, screen);
                Ok(self.printer.out.write_all(text.as_bytes())?)
            }
            OutputFormat::Json => {
                format::json(
                    &self.projected(&value),
                    Some(0),
                    screen,
                    &mut self.printer.out,
                )?;
                Ok(self.printer.out.write_all(b"\n")?)
            }
            OutputFormat::Table | OutputFormat::Ndjson | OutputFormat::Csv | OutputFormat::Tsv => {
                self.write(&value)
            }
        }
    }

    /// Applies a filter, and writes its output in the requested format. Without one, strings are
    /// written without quotes, and other values as JSON.
    fn filter(mut self, jq: &Jq, input: Value) -> Result<()> {
        let input = match input {
            Value::Array(rows) => rows
                .iter()
                .map(|row| self.projected(row).into_owned())
                .collect(),
            single => self.projected(&single).into_owned(),
        };
        let values = jq.run(&input)?;
        let Some(format) = self.printer.format else {
            return Ok(format::raw(
                &values,
                &self.printer.screen,
                &mut self.printer.out,
            )?);
        };
        self.printer.fields = None;
        self.printer.jq = None;
        let result = || self.printer.start(ANY);
        match values.as_slice() {
            [value] => result()?.document(value),
            values if format == OutputFormat::Json => values
                .iter()
                .try_for_each(|value| result()?.document(value)),
            values => result()?.document(&values),
        }
    }

    fn projected<'v>(&self, record: &'v Value) -> Cow<'v, Value> {
        match &self.printer.fields {
            Some(_) => Cow::Owned(column::project(record, &self.columns)),
            None => Cow::Borrowed(record),
        }
    }

    /// Finds the columns in the first records. Later ones add columns only to a table, which is written
    /// at the end.
    fn set_columns(&mut self, rows: &[Value]) -> Result<()> {
        let mut found = self.columns.clone();
        column::add_found(&mut found, rows);
        match &self.printer.fields {
            _ if rows.is_empty() => return Ok(()),
            None if self.has_columns => {
                match self.format {
                    OutputFormat::Table => self.columns = found,
                    OutputFormat::Csv | OutputFormat::Tsv => {
                        let late = found.get(self.columns.len());
                        self.late = self.late.take().or(late.cloned());
                    }
                    OutputFormat::Json | OutputFormat::Ndjson => {}
                }
                return Ok(());
            }
            Some(_) if self.has_columns => return Ok(()),
            None => self.columns = found,
            Some(names) => {
                let missing = names.iter().find(|name| !found.contains(name));
                if let Some(name) = missing
                    && rows.iter().all(Value::is_object)
                {
                    let problem = format!("{} have no field `{name}`", self.shape.noun);
                    let hint = did_you_mean(name, found.iter().map(String::as_str))
                        .unwrap_or_else(|| format!("the fields are {}", found.join(", ")));
                    return Err(CliError::new(Kind::Usage, problem).hint(hint));
                }
                self.columns.clone_from(names);
            }
        }
        self.has_columns = true;
        Ok(())
    }

    /// Writes the names of the columns before the first record of a streamed format, if the format
    /// has such a line.
    fn write_header(&mut self) -> io::Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let names = self.columns.iter().map(|name| Cow::Borrowed(name.as_str()));
        match self.format {
            OutputFormat::Csv => format::csv(names, &self.printer.screen, &mut self.printer.out),
            OutputFormat::Table | OutputFormat::Json | OutputFormat::Ndjson | OutputFormat::Tsv => {
                Ok(())
            }
        }
    }

    /// Writes a record in a streamed format.
    fn write(&mut self, record: &Value) -> Result<()> {
        let is_first = std::mem::replace(&mut self.is_empty, false);
        if is_first {
            self.write_header()?;
        }
        let record = &*self.projected(record);
        let screen = &self.printer.screen;
        let out = &mut self.printer.out.clone();
        match self.format {
            OutputFormat::Json => {
                out.write_all(if is_first { b"[\n  " } else { b",\n  " })?;
                format::json(record, Some(1), screen, out)?;
            }
            OutputFormat::Ndjson => {
                format::json(record, None, screen, out)?;
                out.write_all(b"\n")?;
            }
            OutputFormat::Tsv | OutputFormat::Table => {
                format::tsv(&column::cells(record, &self.columns), out)?;
            }
            OutputFormat::Csv => format::csv(column::cells(record, &self.columns), screen, out)?,
        }
        Ok(())
    }
}
