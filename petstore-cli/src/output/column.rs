//! Which fields of a record are shown, by name or by path, and their text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::json::to_text;

/// A field: its name, or a path of names with dots in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column(String);

impl Column {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Returns the name of the outermost field.
    pub(crate) fn first(&self) -> &str {
        self.0.split('.').next().unwrap_or(&self.0)
    }

    /// Returns whether the field identifies something, so that a part of it would be useless.
    pub(crate) fn is_id(&self) -> bool {
        let name = self.0.rsplit('.').next().unwrap_or(&self.0);
        name == "id" || name.ends_with("Id") || name.ends_with("_id")
    }

    /// Returns the field of a record. A name that holds dots itself goes before a path.
    pub(crate) fn of<'v>(&self, record: &'v Value) -> Option<&'v Value> {
        record.get(&self.0).or_else(|| {
            self.0.split('.').try_fold(record, |inside, name| match inside {
                Value::Array(list) => list.get(name.parse::<usize>().ok()?),
                other => other.get(name),
            })
        })
    }

    /// Returns the columns of records whose shape is not known: each field that occurs.
    pub(super) fn found_in(records: &[Value]) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for name in records.iter().filter_map(Value::as_object).flat_map(Map::keys) {
            if !found.iter().any(|column| column.0 == *name) {
                found.push(Self::new(name));
            }
        }
        found
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

fn cell(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(to_text(other)),
    }
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
