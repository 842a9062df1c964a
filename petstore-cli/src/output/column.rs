//! The shown fields of records, and their text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Shape;
use super::table::{self, Cell, Head};
use crate::escape::{self, to_text};
use crate::screen::{DIM, GREEN, PLAIN, Screen, YELLOW};

/// The minimum width of a truncated text.
const MIN_WIDTH: usize = 12;

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

/// Returns a record with only these columns, in order.
pub(super) fn project(record: &Value, columns: &[String]) -> Value {
    let Value::Object(fields) = record else {
        return record.clone();
    };
    let mut projected = Map::new();
    for column in columns {
        if let Some(value) = fields.get(column) {
            projected.insert(column.clone(), value.clone());
        }
    }
    Value::Object(projected)
}

/// Returns the cells of a record as plain text. Missing cells are empty. An array is a row of
/// cells, and any other value than an object is one cell.
pub(super) fn cells<'v>(record: &'v Value, columns: &[String]) -> Vec<Cow<'v, str>> {
    match record {
        Value::Object(fields) => columns
            .iter()
            .map(|column| cell(fields.get(column)))
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
        ("status", "pending") | ("left", "0") => YELLOW,
        ("status", "sold") | ("from", _) => DIM,
        _ => PLAIN,
    };
    Cell::new(escape::line(&text)).styled(style)
}

/// Formats records as a table. If it is too wide, hides unknown fields first, from the right.
pub(super) fn table(columns: &[String], rows: &[Value], shape: Shape, screen: &Screen) -> String {
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
        Value::Object(fields) => columns
            .iter()
            .map(|name| styled(name, fields.get(name)))
            .collect(),
        other => cells(other, columns)
            .iter()
            .map(|text| Cell::new(escape::line(text)))
            .collect(),
    };
    let head: Vec<_> = head.collect();
    let rows: Vec<_> = rows.iter().map(row).collect();
    table::render(&head, &rows, screen)
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
    let value = |name: &String| styled(name, record.get(name)).paint(screen);
    let pairs: Vec<_> = columns
        .iter()
        .map(|name| (escape::line(name), value(name)))
        .collect();
    screen.pairs(&pairs)
}
