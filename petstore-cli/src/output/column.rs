//! Which fields of a record are shown, by name or by path, and their text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::table::{Cell, Head, Table};
use crate::escape::{self, to_text};
use crate::screen::{DIM, GREEN, PLAIN, Screen, YELLOW};

/// A field: its name, or a path of names with dots in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column(String);

impl Column {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// Returns the name of the outermost field.
    pub(super) fn first(&self) -> &str {
        self.0.split('.').next().unwrap_or(&self.0)
    }

    /// Returns the field of a record. A name that holds dots itself goes before a path.
    pub(super) fn of<'v>(&self, record: &'v Value) -> Option<&'v Value> {
        record.get(&self.0).or_else(|| {
            self.0.split('.').try_fold(record, |inside, name| match inside {
                Value::Array(list) => list.get(name.parse::<usize>().ok()?),
                other => other.get(name),
            })
        })
    }

    /// Adds each field that records have to the columns.
    pub(super) fn add_found(columns: &mut Vec<Self>, records: &[Value]) {
        for name in records.iter().filter_map(Value::as_object).flat_map(Map::keys) {
            if !columns.iter().any(|column| column.0 == *name) {
                columns.push(Self::new(name));
            }
        }
    }

    /// Turns `categoryId` into `CATEGORY ID`.
    fn title(&self) -> String {
        let mut title = String::with_capacity(self.0.len() + 2);
        for c in self.0.chars() {
            if c.is_ascii_uppercase() && !title.is_empty() {
                title.push(' ');
            }
            title.extend(c.to_uppercase());
        }
        escape::line(&title).into_owned()
    }
}

/// Returns a record with nothing but some columns, in their order; paths stay nested.
pub(super) fn project(record: &Value, columns: &[Column]) -> Value {
    if !record.is_object() {
        return record.clone();
    }
    let mut projected = Value::Object(Map::new());
    for column in columns {
        let Some(value) = column.of(record) else { continue };
        let literal = record.get(&column.0).is_some();
        let path = if literal { vec![column.0.as_str()] } else { column.0.split('.').collect() };
        insert(&mut projected, &path, value);
    }
    projected
}

fn insert(into: &mut Value, path: &[&str], value: &Value) {
    let ([name, rest @ ..], Value::Object(fields)) = (path, into) else { return };
    if rest.is_empty() {
        fields.insert((*name).to_owned(), value.clone());
    } else {
        let inner = fields.entry((*name).to_owned()).or_insert_with(|| Value::Object(Map::new()));
        insert(inner, rest, value);
    }
}

/// Returns the cells of a record as plain text; what is absent is empty. An array is a row of
/// cells, and anything else than an object is one cell.
pub(super) fn cells<'v>(record: &'v Value, columns: &[Column]) -> Vec<Cow<'v, str>> {
    match record {
        Value::Object(_) => columns.iter().map(|column| cell(column.of(record))).collect(),
        Value::Array(list) => list.iter().map(|value| cell(Some(value))).collect(),
        single => vec![cell(Some(single))],
    }
}

pub(super) fn cell(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(to_text(other)),
    }
}

/// Returns a field for people: escaped, and styled by what it says.
fn styled(column: &Column, value: Option<&Value>) -> Cell {
    let style = match (column.name(), value) {
        (_, None | Some(Value::Null)) => return Cell::none(),
        ("status", Some(Value::String(status))) => match status.as_str() {
            "available" => GREEN,
            "pending" => YELLOW,
            "sold" => DIM,
            _ => PLAIN,
        },
        _ => PLAIN,
    };
    Cell::new(escape::line(&cell(value))).styled(style)
}

/// Lays records out as a table. Pets lose unknown fields first when it is too wide, then the
/// category and the status; other records lose their last columns.
pub(super) fn table(columns: &[Column], rows: &[Value], noun: &str) -> Table {
    let head = columns.iter().enumerate().map(|(at, column)| {
        let head = Head::new(column.title());
        match (noun, column.name()) {
            ("pets", "id") => head,
            ("pets", "name") => head.shrinks(12),
            ("pets", "status") => head.dropped(1),
            ("pets", "categoryId") => head.dropped(2),
            _ if at == 0 => head,
            _ => head.shrinks(12).dropped(3 + at),
        }
    });
    let row = |row: &Value| match row {
        Value::Object(_) => columns.iter().map(|column| styled(column, column.of(row))).collect(),
        other => cells(other, columns).iter().map(|text| Cell::new(escape::line(text))).collect(),
    };
    Table { head: head.collect(), rows: rows.iter().map(row).collect() }
}

/// Lays one record out as names and values.
pub(super) fn pairs(columns: &[Column], record: &Value, screen: &Screen) -> Vec<(String, String)> {
    let pair = |column: &Column| {
        let cell = styled(column, column.of(record));
        (escape::line(column.name()).into_owned(), cell.paint(screen))
    };
    columns.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_fields_by_name_and_by_path() {
        let record = json!({ "a": { "b": [1, 2] }, "x.y": 3 });
        assert_eq!(Column::new("a.b.1").of(&record), Some(&json!(2)));
        assert_eq!(Column::new("x.y").of(&record), Some(&json!(3)));
        assert_eq!(Column::new("a.c").of(&record), None);
    }

    #[test]
    fn keeps_what_was_nested_nested() {
        let record = json!({ "a": { "b": 1, "c": 2 }, "d": 3, "e": 4 });
        let columns = ["d", "a.c"].map(Column::new);
        assert_eq!(project(&record, &columns), json!({ "d": 3, "a": { "c": 2 } }));
    }
}
