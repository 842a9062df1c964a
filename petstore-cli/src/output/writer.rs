//! One result on its way out: fields chosen, `--jq` applied, written in a format.

use std::io::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::column::{Column, project};
use super::format::{Format, Kind, OutputFormat, Records};
use super::jq::Jq;
use super::sink::Sink;
use crate::error::CliError;
use crate::exit::Exit;

/// What a result is to look like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    /// The format that was asked for.
    pub(crate) format: Option<OutputFormat>,
    /// The fields that were asked for.
    pub(crate) fields: Option<Vec<String>>,
    /// The expression that was asked for.
    pub(crate) jq: Option<String>,
    pub(crate) is_terminal: bool,
    /// How many columns the terminal has, where it is known.
    pub(crate) width: Option<u16>,
    pub(crate) color: bool,
}

impl Look {
    /// Returns the format that was asked for, or fits.
    pub(crate) fn format(&self) -> OutputFormat {
        match self.format {
            Some(format) => format,
            None if self.jq.is_some() => OutputFormat::Json,
            None => OutputFormat::fitting(self.is_terminal),
        }
    }
}

/// A result that is being written.
pub(crate) struct Output {
    out: Sink,
    format: Box<dyn Format>,
    /// The columns; without them, the fields that the records have.
    columns: Option<Vec<Column>>,
    /// Whether fields were chosen, so that documents lose the others too.
    chosen: bool,
    jq: Option<Jq>,
    /// The records of a document that is not whole yet.
    held: Vec<Value>,
    begun: bool,
}

impl Output {
    /// Begins a result whose records have the given fields, or any. Nothing is written yet.
    ///
    /// # Errors
    ///
    /// Where `--fields` names none of the fields, or `--jq` cannot be understood.
    pub(crate) fn new(out: Sink, look: &Look, known: Option<&[&str]>) -> Result<Self, CliError> {
        let jq = look.jq.as_deref().map(Jq::parse).transpose()?;
        let chosen = look.fields.as_deref().map(|names| choose(names, known)).transpose()?;
        Ok(Self {
            out,
            format: look.format().format(look),
            chosen: chosen.is_some(),
            columns: chosen
                .or_else(|| Some(known?.iter().map(|name| Column::new(*name)).collect())),
            jq,
            held: Vec::new(),
            begun: false,
        })
    }

    /// Adds records to a list. Formats of records write them at once.
    pub(crate) fn rows<T: Serialize>(&mut self, records: &[T]) -> Result<(), CliError> {
        let rows: Result<Vec<_>, _> = records.iter().map(serde_json::to_value).collect();
        let rows = rows.map_err(|problem| CliError::new(Exit::Internal, problem))?;
        if self.jq.is_some() || self.format.kind() != Kind::Stream {
            self.held.extend(rows);
            return Ok(());
        }
        self.write(&rows, false)?;
        Ok(self.out.flush()?)
    }

    /// Ends a list.
    pub(crate) async fn done(mut self) -> Result<(), CliError> {
        let held = std::mem::take(&mut self.held);
        if let Some(jq) = self.jq.take() {
            let rows = held.into_iter();
            let rows = rows.map(|row| if self.chosen { self.narrowed(&row) } else { row });
            return self.filtered(jq, Value::Array(rows.collect())).await;
        }
        if !self.begun || !held.is_empty() {
            self.write(&held, false)?;
        }
        Ok(())
    }

    /// Writes one value as the whole result; an array is a list.
    pub(crate) async fn document(mut self, value: &impl Serialize) -> Result<(), CliError> {
        match serde_json::to_value(value) {
            Ok(Value::Array(rows)) => {
                self.rows(&rows)?;
                self.done().await
            }
            Ok(value) => match self.jq.take() {
                Some(jq) => {
                    let value = if self.chosen { self.narrowed(&value) } else { value };
                    self.filtered(jq, value).await
                }
                None => self.write(&[value], true),
            },
            Err(problem) => Err(CliError::new(Exit::Internal, problem)),
        }
    }

    /// Writes what a filter makes of the result. A list that it returns is the list; else each
    /// value is a record, or a document.
    async fn filtered(&mut self, jq: Jq, input: Value) -> Result<(), CliError> {
        let mut values = jq.run(input).await?;
        self.columns = None;
        self.chosen = false;
        if let [Value::Array(rows)] = values.as_mut_slice() {
            let rows = std::mem::take(rows);
            return self.write(&rows, false);
        }
        if self.format.kind() != Kind::Document {
            return self.write(&values, false);
        }
        for value in values {
            self.write(&[value], true)?;
        }
        Ok(())
    }

    fn narrowed(&self, row: &Value) -> Value {
        project(row, self.columns.as_deref().unwrap_or_default())
    }

    fn write(&mut self, rows: &[Value], single: bool) -> Result<(), CliError> {
        let narrowed: Option<Vec<_>> =
            self.chosen.then(|| rows.iter().map(|row| self.narrowed(row)).collect());
        let columns = self.columns.get_or_insert_with(|| Column::found_in(rows));
        let rows = narrowed.as_deref().unwrap_or(rows);
        let first = !std::mem::replace(&mut self.begun, true);
        let records = Records { rows, columns, first, single };
        self.format.write(&records, &mut self.out)
    }
}

fn choose(names: &[String], known: Option<&[&str]>) -> Result<Vec<Column>, CliError> {
    let columns: Vec<_> = names.iter().map(Column::new).collect();
    let Some(known) = known else { return Ok(columns) };
    match columns.iter().find(|column| !known.contains(&column.first())) {
        None => Ok(columns),
        Some(wrong) => Err(CliError::usage(format!("there is no field `{}`", wrong.name()))
            .hint(format!("the fields are {}", known.join(", ")))),
    }
}
