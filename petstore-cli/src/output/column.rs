//! The shown fields of records, by name or path (`owner.name`), and their text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Shape;
use super::table::{Cell, Head, Table};
use crate::escape::{self, to_text};
use crate::screen::{DIM, GREEN, PLAIN, Screen, YELLOW};

/// The minimum width of a truncated text.
const MIN_WIDTH: usize = 12;

/// Returns a field of a record. A name that contains dots takes precedence over a path.
pub(super) fn field<'v>(record: &'v Value, path: &str) -> Option<&'v Value> {
    record.get(path).or_else(|| {
        path.split('.')
            .try_fold(record, |inside, name| match inside {
                Value::Array(list) => list.get(name.parse::<usize>().ok()?),
                other => other.get(name),
            })
    })
}

/// Adds all fields of the records to the columns.
pub(super) fn add_found(columns: &mut Vec<String>, records: &[Value]) {
    for name in records
        .iter()
        .filter_map(Value::as_object)
        .flat_map(Map::keys)
    {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
}

/// Returns a record with only these columns, in order. Paths stay nested.
pub(super) fn project(record: &Value, columns: &[String]) -> Value {
    if !record.is_object() {
        return record.clone();
    }
    let mut projected = Value::Object(Map::new());
    for column in columns {
        let Some(value) = field(record, column) else {
            continue;
        };
        let is_name = record.get(column).is_some();
        let names = if is_name {
            vec![column.as_str()]
        } else {
            column.split('.').collect()
        };
        let mut place = &mut projected;
        for name in names {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[name];
        }
        *place = value.clone();
    }
    projected
}

/// Returns the cells of a record as plain text. Missing cells are empty. An array is a row of
/// cells, and any other value than an object is one cell.
pub(super) fn cells<'v>(record: &'v Value, columns: &[String]) -> Vec<Cow<'v, str>> {
    match record {
        Value::Object(_) => columns
            .iter()
            .map(|column| cell(field(record, column)))
            .collect(),
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

/// Returns a field's cell for a table, escaped and styled.
fn styled(column: &str, value: Option<&Value>) -> Cell {
    if value.is_none_or(Value::is_null) {
        return Cell::none();
    }
    let text = cell(value);
    let style = match (column, &*text) {
        ("status", "available") => GREEN,
        ("status", "pending") => YELLOW,
        ("status", "sold") | ("from", _) => DIM,
        _ => PLAIN,
    };
    Cell::new(escape::line(&text)).styled(style)
}

/// Formats records as a table. If it is too wide, hides unknown fields first, from the right.
pub(super) fn table(columns: &[String], rows: &[Value], shape: Shape) -> Table {
    let head = columns.iter().enumerate().map(|(at, column)| {
        let head = Head::new(title(column));
        let is_known = shape.fields.contains(&column.as_str());
        let dropped = shape.dropped.iter().rev().position(|name| name == column);
        match dropped {
            Some(order) => head.dropped(order + 1),
            None if column == "name" => head.shrinks(MIN_WIDTH),
            None if is_known || at == 0 => head,
            None => head
                .shrinks(MIN_WIDTH)
                .dropped(shape.dropped.len() + 1 + at),
        }
    });
    let row = |row: &Value| match row {
        Value::Object(_) => columns
            .iter()
            .map(|name| styled(name, field(row, name)))
            .collect(),
        other => cells(other, columns)
            .iter()
            .map(|text| Cell::new(escape::line(text)))
            .collect(),
    };
    Table::new(head.collect(), rows.iter().map(row).collect())
}

/// Turns `categoryId` into `CATEGORY ID`.
fn title(name: &str) -> String {
    let mut title = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !title.is_empty() {
            title.push(' ');
        }
        title.extend(c.to_uppercase());
    }
    escape::line(&title).into_owned()
}

/// Formats one record as names and values.
pub(super) fn pairs(columns: &[String], record: &Value, screen: &Screen) -> String {
    let value = |name: &String| styled(name, field(record, name)).paint(screen);
    let pairs: Vec<_> = columns
        .iter()
        .map(|name| (escape::line(name), value(name)))
        .collect();
    screen.pairs(&pairs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_fields_by_name_and_by_path() {
        let record = json!({ "a": { "b": [1, 2] }, "x.y": 3 });
        assert_eq!(field(&record, "a.b.1"), Some(&json!(2)));
        assert_eq!(field(&record, "x.y"), Some(&json!(3)));
        assert_eq!(field(&record, "a.c"), None);
    }

    #[test]
    fn keeps_nested_fields_nested() {
        let record = json!({ "a": { "b": 1, "c": 2 }, "d": 3, "e": [4] });
        let columns = ["d", "a.c", "e.0"].map(str::to_owned);
        let projected = json!({ "d": 3, "a": { "c": 2 }, "e": { "0": 4 } });
        assert_eq!(project(&record, &columns), projected);
    }
}
