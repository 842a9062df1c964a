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
    let Ok(Entries(entries)) = serde_json::from_str(value) else {
        return Err("the name of a field is not Unicode".to_owned());
    };
    let mut problems = Vec::new();
    let mut object = BTreeMap::new();
    for (name, value) in entries {
        if FIELDS.contains(&&*name) && object.contains_key(&name) {
            problems.push(format!("{name}: there are several"));
        }
        object.insert(name, value);
    }
    for name in object.keys().filter(|name| is_foreign(name)) {
        if let Some(field) = similar(name, FIELDS) {
            let name = shorten(name);
            problems.push(format!("{name}: unknown; did you mean `{field}`?"));
        } else if !ignored.contains(name) {
            ignored.push(name.clone());
        }
    }
    match Fields::Json(&object).pet() {
        Ok(pet) if problems.is_empty() => Ok(pet),
        pet => {
            problems.extend(pet.err());
            Err(problems.join("; "))
        }
    }
}

/// The fields of an object, as often as they are written.
struct Entries<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Entries<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'t> Visitor<'t> for EntriesVisitor {
    type Value = Entries<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'t>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
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
        let mut object = match serde_json::from_str(raw.get()) {
            Ok(Value::Object(object)) => object,
            Ok(other) => Map::from_iter([("value".to_owned(), other)]),
            Err(_) => Map::from_iter([("value".to_owned(), raw.get().into())]),
        };
        object.insert(column.to_owned(), value.clone());
        serde_json::to_writer(&mut lines, &object)?;
        lines.push(b'\n');
    }
    Ok(lines)
}
