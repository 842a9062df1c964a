//! Reads a setting from text, a number or a truth value, and writes it as text.

use std::fmt::Display;
use std::str::FromStr;

use clap::ValueEnum;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use super::secrets::without_password;
use super::types::{parse, parse_choice};
use crate::error::Invalid;

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected text, a number, true or false")]
enum Scalar {
    Text(String),
    Number(i64),
    Truth(bool),
}

pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr,
    Invalid: From<T::Err>,
    D: Deserializer<'de>,
{
    read(deserializer, parse)
}

/// Reads one of the values that the help names.
pub(super) fn choice<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: ValueEnum,
    D: Deserializer<'de>,
{
    read(deserializer, parse_choice)
}

fn read<'de, T, D>(
    deserializer: D,
    parse: fn(&str) -> Result<T, Invalid>,
) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = match Scalar::deserialize(deserializer)? {
        Scalar::Text(text) => text,
        Scalar::Number(number) => number.to_string(),
        Scalar::Truth(truth) => truth.to_string(),
    };
    match parse(&text) {
        Ok(value) => Ok(Some(value)),
        Err(invalid) => Err(D::Error::custom(invalid.sentence(&without_password(&text)))),
    }
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
