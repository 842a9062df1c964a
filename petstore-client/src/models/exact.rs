//! Decodes responses with all digits of their numbers.
//!
//! The parser of `serde_json` rounds some fractions wrongly, and fails on numbers beyond the range
//! of `f64`. A feature of `serde_json` would help, but it would be on in the whole program. So
//! fields that this version does not know are read as text first. Integers beyond 64 bits stay text.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

/// Deeper values are decoded by `serde_json`, because each level here means reading the text once
/// more.
const MAX_DEPTH: usize = 16;

/// Any JSON in a response.
pub(crate) struct ReceivedValue(Value);

impl ReceivedValue {
    pub(crate) fn into_value(self) -> Value {
        self.0
    }
}

impl<'de> Deserialize<'de> for ReceivedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(value(json)))
    }
}

/// Decodes a value. What `Value` cannot hold is kept as text.
pub(super) fn value(json: &RawValue) -> Value {
    value_at(json, 0)
}

fn value_at(json: &RawValue, depth: usize) -> Value {
    let text = json.get();
    let decoded = match text.as_bytes().first() {
        Some(b'{') if depth < MAX_DEPTH => object(text, depth),
        Some(b'[') if depth < MAX_DEPTH => array(text, depth),
        Some(b'-' | b'0'..=b'9') => number(text),
        _ => serde_json::from_str(text).ok(),
    };
    decoded.unwrap_or_else(|| text.into())
}

fn object(text: &str, depth: usize) -> Option<Value> {
    let fields: Fields<'_> = serde_json::from_str(text).ok()?;
    let mut object = Map::new();
    for (name, json) in fields.0 {
        object.insert(name, value_at(json, depth + 1));
    }
    Some(Value::Object(object))
}

fn array(text: &str, depth: usize) -> Option<Value> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let mut array = Vec::with_capacity(items.len());
    for json in items {
        array.push(value_at(json, depth + 1));
    }
    Some(Value::Array(array))
}

fn number(text: &str) -> Option<Value> {
    if text != "-0" {
        // With its feature `arbitrary_precision`, serde_json keeps a number as it was written.
        // Without it, it keeps integers of 64 bits.
        if let Ok(number) = serde_json::from_str::<Number>(text)
            && number.to_string() == text
        {
            return Some(Value::Number(number));
        }
        if !text.contains(['.', 'e', 'E']) {
            return None;
        }
    }
    let exact = text.parse().ok()?;
    Number::from_f64(exact).map(Value::Number)
}

/// The fields of an object, in order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(FieldsVisitor).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Pet, ReceivedPet};

    fn pet(extra: &str) -> Pet {
        let text = format!(r#"{{"id":1,"name":"a","categoryId":1,"status":null,{extra}}}"#);
        serde_json::from_str::<ReceivedPet>(&text)
            .unwrap()
            .into_pet()
    }

    /// An integer of more than 64 bits.
    const LONG: &str = "-123456789012345678901234567890";

    #[test]
    fn an_unknown_field_may_hold_any_json_and_keeps_its_digits() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        let pet = pet(&format!(
            r#""length":122.416294033786585,"mass":1e400,"deep":{deep},"big":18446744073709551615,"longer":{LONG},"zero":-0,"inner":{{"a":[122.416294033786585]}}"#
        ));
        assert_eq!(pet.extra["length"].as_f64(), Some(122.416_294_033_786_58));
        assert_eq!(pet.extra["inner"]["a"][0], pet.extra["length"]);
        // A number if the program sets the feature `arbitrary_precision` of serde_json.
        let mass = pet.extra["mass"].to_string();
        assert_eq!(mass.replace(['"', '+'], ""), "1e400");
        let innermost = (0..MAX_DEPTH).fold(&pet.extra["deep"], |value, _| &value[0]);
        assert!(innermost.is_string(), "deeper than serde_json decodes");
        assert_eq!(pet.extra["big"], u64::MAX);
        assert_eq!(pet.extra["longer"].to_string().replace('"', ""), LONG);
        assert_eq!(
            (pet.status, pet.extra["zero"].to_string()),
            (None, "-0.0".into())
        );
    }

    #[test]
    fn an_array_is_not_a_pet_and_a_field_comes_once() {
        assert!(serde_json::from_str::<ReceivedPet>(r#"[1,"Rex",7,"sold"]"#).is_err());
        let twice = r#"{"id":1,"id":2,"name":"a","categoryId":1}"#;
        assert!(serde_json::from_str::<ReceivedPet>(twice).is_err());
    }

    #[test]
    fn any_json_keeps_its_digits() {
        let text = r#"[{"total": 122.416294033786585, "id": 7, "note": "a\u0062", "paid": true}]"#;
        let value = serde_json::from_str::<ReceivedValue>(text)
            .unwrap()
            .into_value();
        assert_eq!(value[0]["total"].as_f64(), Some(122.416_294_033_786_58));
        assert_eq!(
            (&value[0]["note"], &value[0]["paid"]),
            (&"ab".into(), &true.into())
        );
    }
}
