//! Reads JSON objects, one per line or in an array, and writes some of them with one more field.

use std::collections::BTreeMap;

use petstore_client::NewPet;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::{FIELDS, Fields, is_foreign};
use super::row::{Fault, Lines, Parsed, Row, shorten};
use crate::error::{CliError, Result};
use crate::suggest::similar;

/// Reads the rows of an input.
pub(super) fn read(name: &str, text: &str) -> Result<Parsed> {
    let values = values(text).map_err(|error| not_json(name, &error))?;
    let lines = Lines::of(text);
    let mut parsed = Parsed::default();
    for value in values {
        let value = value.get();
        let start = value.as_ptr() as usize - text.as_ptr() as usize;
        let pet = pet(value, &mut parsed.ignored);
        let span = start..start + value.len();
        parsed.rows.push(Row::new(lines.number(start), span, pet));
    }
    Ok(parsed)
}

/// Splits text into JSON values: those of an array, or concatenated values.
fn values(text: &str) -> serde_json::Result<Vec<&RawValue>> {
    let text = text.trim_end();
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect()
}

fn not_json(name: &str, error: &serde_json::Error) -> CliError {
    let problem = match error.is_eof() {
        true => "the JSON ends too early".to_owned(),
        false => format!("not valid JSON at column {}", error.column()),
    };
    CliError::input(format!("{name} line {}: {problem}", error.line()))
        .hint("write one JSON object per line, or all in one array")
}

/// Returns the pet of an object, or all that is wrong with it. Notes the fields that are ignored.
fn pet(value: &str, ignored: &mut Vec<String>) -> Result<NewPet, Vec<Fault>> {
    if !value.starts_with('{') {
        let text = format!("`{}` is not an object", shorten(value));
        return Err(vec![Fault::new(text)]);
    }
    let Ok(object) = serde_json::from_str::<BTreeMap<String, &RawValue>>(value) else {
        return Err(vec![Fault::new("the name of a field is not Unicode")]);
    };
    let mut faults = Vec::new();
    for name in object.keys().filter(|name| is_foreign(name)) {
        if let Some(field) = similar(name, FIELDS) {
            let text = format!("unknown; did you mean `{field}`?");
            faults.push(Fault::of_field(&shorten(name), text));
        } else if !ignored.contains(name) {
            ignored.push(name.clone());
        }
    }
    match Fields::Json(&object).pet() {
        Ok(pet) if faults.is_empty() => Ok(pet),
        Ok(_) => Err(faults),
        Err(more) => {
            faults.extend(more);
            Err(faults)
        }
    }
}

/// Returns rows of an input with a value in one more field.
pub(super) fn with_column<'t>(
    column: &str,
    rows: impl Iterator<Item = (&'t str, &'t Value)>,
) -> String {
    let mut text = String::new();
    for (row, value) in rows {
        let mut object = match serde_json::from_str(row) {
            Ok(Value::Object(object)) => object,
            Ok(other) => Map::from_iter([("value".to_owned(), other)]),
            Err(_) => Map::from_iter([("value".to_owned(), row.into())]),
        };
        object.insert(column.to_owned(), value.clone());
        text += &Value::Object(object).to_string();
        text.push('\n');
    }
    text
}
