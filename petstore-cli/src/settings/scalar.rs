//! Reads a setting from text, a number or a truth value, and writes it as text.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};
use serde_json::Value;

use super::secrets::without_password;

pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr,
    T::Err: Display,
    D: Deserializer<'de>,
{
    let text = match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        scalar @ (Value::Number(_) | Value::Bool(_)) => scalar.to_string(),
        _ => return Err(D::Error::custom("expected text, a number, true or false")),
    };
    text.parse().map(Some).map_err(|problem| {
        let text = without_password(&text);
        D::Error::custom(format!("invalid value `{text}`: {problem}"))
    })
}

pub(super) fn serialize<T, S>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Display,
    S: Serializer,
{
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
