//! Writes the fields that this version does not know.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Number, Value};

/// Writes the fields into the object of a pet. Fails if one has the name of a known field, because
/// the object would then have two fields with this name.
pub(super) fn write<S: Serializer>(
    extra: &Map<String, Value>,
    known: &[&str],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if let Some(name) = extra.keys().find(|name| known.contains(&name.as_str())) {
        return Err(S::Error::custom(format_args!(
            "`extra` has a field `{name}`, which is a field of the pet; set that one"
        )));
    }
    serializer.collect_map(extra.iter().map(|(name, value)| (name, Portable(value))))
}

/// A value that every format can write. With its feature `arbitrary_precision`, which any package of
/// a build may set, serde_json writes its numbers as structs. Some binary formats read those back as
/// arrays of text.
struct Portable<'a>(&'a Value);

impl Serialize for Portable<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) if !serializer.is_human_readable() => {
                write_number(number, serializer)
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Portable)),
            Value::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(name, value)| (name, Portable(value))))
            }
            other => other.serialize(serializer),
        }
    }
}

fn write_number<S: Serializer>(number: &Number, serializer: S) -> Result<S::Ok, S::Error> {
    if let Some(number) = number.as_i64() {
        return serializer.serialize_i64(number);
    }
    if let Some(number) = number.as_u64() {
        return serializer.serialize_u64(number);
    }
    match number.as_f64() {
        Some(number) => serializer.serialize_f64(number),
        None => serializer.collect_str(number),
    }
}
