//! Reads a setting from text, a number or a truth value, and writes it as text.

use std::error::Error;
use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::str::{FromStr, ParseBoolError};

use clap::ValueEnum;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};
use serde_json::Value;

use super::secrets::without_password;

pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr,
    T::Err: Into<Box<dyn Error>>,
    D: Deserializer<'de>,
{
    let text = text(deserializer)?;
    text.parse().map(Some).map_err(|problem: T::Err| {
        let accepted = accepted(&*problem.into());
        invalid(&text, &accepted)
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

/// Reads one of the values of an option.
pub(super) fn choice<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: ValueEnum,
    D: Deserializer<'de>,
{
    let text = text(deserializer)?;
    T::from_str(&text, false).map(Some).map_err(|_| {
        let values = T::value_variants().iter().filter_map(T::to_possible_value);
        let names: Vec<_> = values.map(|value| value.get_name().to_owned()).collect();
        invalid(&text, &format!("give one of {}", names.join(", ")))
    })
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        scalar @ (Value::Number(_) | Value::Bool(_)) => Ok(scalar.to_string()),
        _ => Err(D::Error::custom("expected text, a number, true or false")),
    }
}

fn invalid<E: serde::de::Error>(text: &str, accepted: &str) -> E {
    let text = without_password(text);
    E::custom(format!("invalid value `{text}`: {accepted}"))
}

/// Says what is accepted instead. The standard library's words are for programmers.
pub(crate) fn accepted(problem: &(dyn Error + 'static)) -> String {
    match problem.downcast_ref().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => {
            "the number is too large".to_owned()
        }
        Some(_) => "give a whole number".to_owned(),
        None if problem.is::<ParseBoolError>() => "give true or false".to_owned(),
        None => problem.to_string(),
    }
}
