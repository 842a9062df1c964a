//! Reads JSON objects, one per line or in an array, and writes some of them with one more field.

use std::collections::BTreeMap;
use std::fmt;

use petstore_client::NewPet;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Parsed;
use super::fields::{FIELDS, Fields, is_foreign, shorten};
use crate::error::{CliError, Result};
use crate::suggest::similar;

/// Reads the rows of an input.
pub(super) fn read(name: &str, text: &str) -> Result<Parsed> {
    let mut parsed = Parsed::default();
    for value in values(text).map_err(|error| not_json(name, &error))? {
        let value = value.get();
        let start = value.as_ptr() as usize - text.as_ptr() as usize;
        let pet = pet(value, &mut parsed.ignored);
        parsed.rows.push((start, pet));
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
fn pet(value: &str, ignored: &mut Vec<String>) -> Result<NewPet, String> {
    if !value.starts_with('{') {
        return Err(format!("`{}` is not an object", shorten(value)));
    }
    let Ok(Object { fields, repeated }) = serde_json::from_str(value) else {
        return Err("the name of a field is not Unicode".to_owned());
    };
    let mut problems = Vec::new();
    for name in repeated {
        problems.push(format!("{name}: there are several"));
    }
    for name in fields.keys().filter(|name| is_foreign(name)) {
        if let Some(field) = similar(name, FIELDS) {
            let name = shorten(name);
            problems.push(format!("{name}: unknown; did you mean `{field}`?"));
        } else if !ignored.contains(name) {
            ignored.push(name.clone());
        }
    }
    match Fields::Json(&fields).pet() {
        Ok(pet) if problems.is_empty() => Ok(pet),
        pet => {
            problems.extend(pet.err());
            Err(problems.join("; "))
        }
    }
}

/// An object, and the fields of a pet that it has several times.
#[derive(Default)]
struct Object<'t> {
    fields: BTreeMap<String, &'t RawValue>,
    repeated: Vec<String>,
}

impl<'t> Deserialize<'t> for Object<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'t> Visitor<'t> for ObjectVisitor {
    type Value = Object<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'t>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut object = Object::default();
        while let Some((name, value)) = map.next_entry::<String, _>()? {
            let earlier = object.fields.insert(name.clone(), value);
            if earlier.is_some() && FIELDS.contains(&&*name) {
                object.repeated.push(name);
            }
        }
        Ok(object)
    }
}

/// Returns the rows that have a value, with this value in one more field.
pub(super) fn with_column(
    text: &str,
    column: &str,
    column_values: &BTreeMap<usize, Value>,
) -> serde_json::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for (row, raw) in values(text)?.into_iter().enumerate() {
        let Some(value) = column_values.get(&row) else {
            continue;
        };
        let raw = raw.get();
        // A value would keep only one of several fields with the same name.
        let is_ambiguous =
            serde_json::from_str(raw).is_ok_and(|object: Object<'_>| !object.repeated.is_empty());
        let mut object = match serde_json::from_str(raw) {
            Ok(Value::Object(object)) if !is_ambiguous => object,
            Ok(other) if !is_ambiguous => Map::from_iter([("value".to_owned(), other)]),
            _ => Map::from_iter([("value".to_owned(), raw.into())]),
        };
        object.insert(column.to_owned(), value.clone());
        serde_json::to_writer(&mut lines, &object)?;
        lines.push(b'\n');
    }
    Ok(lines)
}
