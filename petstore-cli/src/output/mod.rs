//! Results, from the values that commands hand over to bytes on standard output: fields chosen,
//! `--jq` applied, written in a format.

mod column;
mod format;
mod jq;
mod table;

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;

use self::column::Column;
use self::jq::Jq;
use crate::error::{CliError, Kind};
use crate::screen::Screen;
use crate::suggest::similar;

pub(crate) use self::format::OutputFormat;
pub(crate) use self::table::{Cell, Head, Table};

/// What results are to look like.
#[derive(Debug, Clone)]
pub(crate) struct OutputOptions {
    /// The format that was asked for.
    pub(crate) format: Option<OutputFormat>,
    pub(crate) fields: Option<Vec<String>>,
    pub(crate) jq: Option<String>,
    /// The variables that `env` shows to `--jq`.
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) screen: Screen,
}

impl OutputOptions {
    /// Returns the format that was asked for, or fits: a table for people, tabs for programs.
    pub(crate) fn format(&self) -> OutputFormat {
        self.format.unwrap_or(match self.screen.is_terminal {
            true => OutputFormat::Table,
            false => OutputFormat::Tsv,
        })
    }

    /// Returns whether a command may lay its result out for people.
    pub(crate) fn is_table(&self) -> bool {
        self.jq.is_none() && self.fields.is_none() && self.format() == OutputFormat::Table
    }
}

/// Standard output, buffered. Handles share it; what is written arrives with a flush.
#[derive(Clone)]
pub(crate) struct Stdout(Arc<Mutex<BufWriter<Box<dyn Write + Send>>>>);

impl Stdout {
    pub(crate) fn new(stream: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(BufWriter::new(stream))))
    }

    fn lock(&self) -> MutexGuard<'_, BufWriter<Box<dyn Write + Send>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

/// What a result consists of: how messages call the records, and the fields that come first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) noun: &'static str,
    pub(crate) fields: &'static [&'static str],
}

/// A result of any shape.
pub(crate) const ANY: Shape = Shape { noun: "the result", fields: &[] };

/// A result that is being written.
pub(crate) struct Output {
    out: Stdout,
    options: OutputOptions,
    format: OutputFormat,
    shape: Shape,
    jq: Option<Jq>,
    /// The columns, known from the first records on.
    columns: Option<Vec<Column>>,
    /// The records of a result that is written when it is whole.
    held: Vec<Value>,
    /// How many records were written.
    written: usize,
    /// A field that appeared after the columns were set.
    late: Option<String>,
}

impl Output {
    /// Begins a result; nothing is written yet.
    ///
    /// # Errors
    ///
    /// Where `--jq` cannot be understood.
    pub(crate) fn new(
        out: Stdout,
        options: &OutputOptions,
        shape: Shape,
    ) -> Result<Self, CliError> {
        let parse = |code: &String| Jq::parse(code, &options.variables);
        Ok(Self {
            out,
            options: options.clone(),
            format: options.format(),
            shape,
            jq: options.jq.as_ref().map(parse).transpose()?,
            columns: None,
            held: Vec::new(),
            written: 0,
            late: None,
        })
    }

    /// Adds records to a list. Formats of records write them at once.
    pub(crate) fn rows<T: Serialize>(&mut self, records: &[T]) -> Result<(), CliError> {
        let rows: Result<Vec<_>, _> = records.iter().map(serde_json::to_value).collect();
        let rows = rows.map_err(CliError::internal)?;
        self.set_columns(&rows)?;
        if self.jq.is_some() || self.format == OutputFormat::Table {
            self.held.extend(rows);
            return Ok(());
        }
        self.write(&rows)?;
        Ok(self.out.flush()?)
    }

    /// Ends a list, and returns a field that the columns lack since it appeared too late.
    pub(crate) fn finish(mut self) -> Result<Option<String>, CliError> {
        let held = std::mem::take(&mut self.held);
        if let Some(jq) = self.jq.take() {
            self.filter(&jq, Value::Array(held))?;
            return Ok(None);
        }
        match self.format {
            OutputFormat::Table => {
                let columns = self.columns.take().unwrap_or_else(|| self.known());
                let table = column::table(&columns, &held, self.shape.noun);
                self.out.write_all(table.render(&self.options.screen).as_bytes())?;
            }
            OutputFormat::Json => {
                self.out.write_all(if self.written == 0 { b"[]\n" } else { b"\n]\n" })?;
            }
            OutputFormat::Csv if self.written == 0 => self.write(&[])?,
            _ => {}
        }
        Ok(self.late)
    }

    /// Writes one value as the whole result; an array is a list.
    pub(crate) fn document(mut self, value: &impl Serialize) -> Result<(), CliError> {
        let value = serde_json::to_value(value).map_err(CliError::internal)?;
        if let Value::Array(rows) = value {
            self.rows(&rows)?;
            return self.finish().map(drop);
        }
        if let Some(jq) = self.jq.take() {
            return self.filter(&jq, value);
        }
        self.single(value)
    }

    fn single(&mut self, value: Value) -> Result<(), CliError> {
        let mut rows = [value];
        self.set_columns(&rows)?;
        let screen = &self.options.screen;
        let columns = self.columns.as_deref().unwrap_or_default();
        match self.format {
            OutputFormat::Table if rows[0].is_object() => {
                let pairs = column::pairs(columns, &rows[0], screen);
                let pairs: Vec<_> =
                    pairs.iter().map(|(name, text)| (&**name, text.clone())).collect();
                Ok(self.out.write_all(screen.pairs(&pairs).as_bytes())?)
            }
            OutputFormat::Json => {
                if self.options.fields.is_some() {
                    rows[0] = column::project(&rows[0], columns);
                }
                format::json(&rows[0], Some(0), screen.color, &mut self.out)?;
                Ok(self.out.write_all(b"\n")?)
            }
            _ => self.write(&rows),
        }
    }

    /// Writes what a filter makes of the result: text raw and other values as JSON, or records
    /// where a format was asked for.
    fn filter(&mut self, jq: &Jq, mut input: Value) -> Result<(), CliError> {
        if self.options.fields.is_some() {
            let columns = self.columns.as_deref().unwrap_or_default();
            match &mut input {
                Value::Array(rows) => {
                    rows.iter_mut().for_each(|row| *row = column::project(row, columns));
                }
                single => *single = column::project(single, columns),
            }
        }
        let values = jq.run(&input)?;
        let Some(format) = self.options.format else {
            return Ok(format::raw(&values, &self.options.screen, &mut self.out)?);
        };
        self.options.fields = None;
        self.columns = None;
        self.shape = ANY;
        match <[Value; 1]>::try_from(values) {
            Ok([Value::Array(rows)]) => {
                let mut list = Output { held: Vec::new(), ..self.successor() };
                list.rows(&rows)?;
                list.finish().map(drop)
            }
            Ok([value]) => self.single(value),
            Err(values) if format == OutputFormat::Json => {
                values.into_iter().try_for_each(|value| self.single(value))
            }
            Err(values) => {
                let mut list = self.successor();
                list.rows(&values)?;
                list.finish().map(drop)
            }
        }
    }

    /// Returns an output for what a filter made of this one.
    fn successor(&self) -> Self {
        Self {
            out: self.out.clone(),
            options: self.options.clone(),
            format: self.format,
            shape: self.shape,
            jq: None,
            columns: None,
            held: Vec::new(),
            written: 0,
            late: None,
        }
    }

    fn known(&self) -> Vec<Column> {
        self.shape.fields.iter().map(|name| Column::new(*name)).collect()
    }

    /// Settles which columns there are, by the first records; later ones may not add any.
    fn set_columns(&mut self, rows: &[Value]) -> Result<(), CliError> {
        if let (Some(columns), None) = (&self.columns, &self.options.fields) {
            let is_new = |name: &&String| !columns.iter().any(|column| column.name() == *name);
            let mut names = rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys());
            self.late = self.late.take().or_else(|| names.find(is_new).cloned());
            return Ok(());
        }
        if rows.is_empty() || self.columns.is_some() {
            return Ok(());
        }
        let mut columns = self.known();
        Column::add_found(&mut columns, rows);
        if let Some(names) = &self.options.fields {
            for name in names {
                let column = Column::new(name);
                let exists = self.shape.fields.contains(&column.first())
                    || rows.iter().any(|row| !row.is_object() || column.of(row).is_some());
                if !exists {
                    let problem = format!("{} have no field `{name}`", self.shape.noun);
                    let error = CliError::new(Kind::Usage, problem);
                    let known: Vec<_> = columns.iter().map(Column::name).collect();
                    return Err(error.hint(match similar(name, known.iter().copied()) {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => format!("there are {}", known.join(", ")),
                    }));
                }
            }
            columns = names.iter().map(Column::new).collect();
        }
        self.columns = Some(columns);
        Ok(())
    }

    /// Writes records in a format that writes each as it comes.
    fn write(&mut self, rows: &[Value]) -> Result<(), CliError> {
        let known;
        let columns = match &self.columns {
            Some(columns) => columns,
            None => {
                known = self.known();
                &known
            }
        };
        let screen = &self.options.screen;
        for row in rows {
            let row = match self.options.fields {
                Some(_) => &column::project(row, columns),
                None => row,
            };
            match self.format {
                OutputFormat::Json => {
                    self.out.write_all(if self.written == 0 { b"[\n  " } else { b",\n  " })?;
                    format::json(row, Some(1), screen.color, &mut self.out)?;
                }
                OutputFormat::Ndjson => {
                    format::json(row, None, screen.color, &mut self.out)?;
                    self.out.write_all(b"\n")?;
                }
                OutputFormat::Id => format::id(row, &mut self.out)?,
                OutputFormat::Tsv | OutputFormat::Table => {
                    format::tsv(&column::cells(row, columns), &mut self.out)?;
                }
                OutputFormat::Csv => {
                    if self.written == 0 && !columns.is_empty() {
                        format::csv_header(columns, screen, &mut self.out)?;
                    }
                    format::csv(column::cells(row, columns), screen, &mut self.out)?;
                }
            }
            self.written += 1;
        }
        if self.format == OutputFormat::Csv && rows.is_empty() && !columns.is_empty() {
            format::csv_header(columns, screen, &mut self.out)?;
        }
        Ok(())
    }
}
