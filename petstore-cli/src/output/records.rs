//! What a command found: a JSON document, and the fields that make its columns.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::json::to_text;

/// One object, or a list of objects.
#[derive(Debug)]
pub(crate) struct Records {
    document: Value,
    columns: Vec<String>,
}

impl Records {
    /// Wraps a value; `columns` are the fields to show where there is a table.
    pub(crate) fn new(value: &impl Serialize, columns: &[&str]) -> Result<Self, serde_json::Error> {
        let document = serde_json::to_value(value)?;
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Ok(Self { document, columns })
    }

    /// Wraps a document of unknown shape, with a column for each field that occurs.
    pub(crate) fn free(document: Value) -> Self {
        let mut columns: Vec<String> = Vec::new();
        for row in rows_of(&document) {
            for name in row.as_object().into_iter().flat_map(serde_json::Map::keys) {
                if !columns.contains(name) {
                    columns.push(name.clone());
                }
            }
        }
        Self { document, columns }
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the cells, row by row, as plain text; what is absent is empty. Rows that are no
    /// objects are one cell.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Vec<Cow<'_, str>>> {
        rows_of(&self.document).iter().map(|row| match row.as_object() {
            Some(row) => self.columns.iter().map(|name| cell(row.get(name))).collect(),
            None => vec![cell(Some(row))],
        })
    }
}

fn rows_of(document: &Value) -> &[Value] {
    match document {
        Value::Array(rows) => rows,
        single => std::slice::from_ref(single),
    }
}

fn cell(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(to_text(other)),
    }
}
