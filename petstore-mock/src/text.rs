//! Handles text from clients: quotes it safely in messages, and parses names and JSON.

use std::{fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, IntoDeserializer as _},
};
use serde_json::Value;

/// Returns `text`, truncated to 60 characters, with control characters escaped.
pub(crate) fn printable(text: &str) -> String {
    shortened(text, 60, 0)
}

/// Returns `text` with control characters escaped.
pub(crate) fn escaped(text: &str) -> String {
    shortened(text, usize::MAX, 0)
}

/// Whether a part of a text is a whole word: no letter, digit, `-` or `_` is beside it.
pub(crate) fn is_word(text: &[u8], part: Range<usize>) -> bool {
    let before = text[..part.start].last();
    let mut beside = before.into_iter().chain(text.get(part.end));
    !beside.any(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Returns the first and the last characters of a text, with control characters escaped.
fn shortened(text: &str, first: usize, last: usize) -> String {
    let left_out = text.chars().count().saturating_sub(first + last);
    let mut out = String::with_capacity(text.len().min(first + last) + 4);
    for (place, character) in text.chars().enumerate() {
        match character {
            _ if (first..first + left_out).contains(&place) => {
                if place == first {
                    out.push('…');
                }
            }
            '"' | '\'' => out.push(character),
            // Escapes control, format (bidi) and unassigned characters, and keeps letters.
            other => out.extend(other.escape_debug()),
        }
    }
    out
}

/// The error for a text that is none of the names of a type, such as [`Operation`](crate::Operation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseNameError {
    names: &'static [&'static str],
}

impl ParseNameError {
    /// Returns all names of the type.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        self.names
    }
}

impl fmt::Display for ParseNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "choose one of {}", self.names.join(", "))
    }
}

impl std::error::Error for ParseNameError {}

impl Error for ParseNameError {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self { names: &[] }
    }

    fn unknown_variant(_: &str, names: &'static [&'static str]) -> Self {
        Self { names }
    }
}

/// Parses a variant by its name in JSON.
pub(crate) fn parse_name<T: DeserializeOwned>(text: &str) -> Result<T, ParseNameError> {
    T::deserialize(text.into_deserializer())
}

/// Writes and parses the values of types by their names in JSON.
macro_rules! named {
    ($($name:ty),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::text::ParseNameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::text::parse_name(text)
            }
        }
    )*};
}

pub(crate) use named;

/// Reads an existing field, including `null`.
pub(crate) fn present<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(from).map(Some)
}

/// Reads a number from 0 to the maximum of an int64.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = i64::deserialize(from)?;
    u64::try_from(number).map_err(|_| D::Error::custom(format!("{number} must be 0 or more")))
}

/// Parses JSON. The error contains the path, line and column. 7.0 is an integer, as in JSON Schema.
pub(crate) fn read_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    // Only an error needs the path, which costs time.
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    // The error may quote a long text of the client.
    read_with_path(text).map_err(|error| shortened(&error, 200, 100))
}

/// Parses a JSON array. An error contains `example`, an item.
#[cfg(any(test, feature = "cli"))]
pub(crate) fn read_array<T: DeserializeOwned>(
    text: &[u8],
    example: &str,
) -> Result<Vec<T>, String> {
    if !text.trim_ascii_start().starts_with(b"[") {
        return Err(format!("give an array, such as [{example}]"));
    }
    read_json(text).map_err(|error| format!("{error}; an item is such as {example}"))
}

fn read_with_path<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    match serde_path_to_error::deserialize(&mut deserializer) {
        Ok(value) => match deserializer.end() {
            Ok(()) => Ok(value),
            Err(error) => Err(error.to_string()),
        },
        Err(error) => read_by_value(text, &error),
    }
}

type PathError = serde_path_to_error::Error<serde_json::Error>;

/// Returns the text of an error with its path.
fn located(error: &PathError) -> String {
    match error.path().to_string().as_str() {
        "." | "?" => error.inner().to_string(),
        path => format!("`{path}`: {}", error.inner()),
    }
}

/// Parses JSON that cannot be parsed as it is: its integers may be written as decimals.
fn read_by_value<T: DeserializeOwned>(text: &[u8], error: &PathError) -> Result<T, String> {
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        return Err(located(error));
    };
    let mut unified = value.clone();
    unify_integers(&mut unified);
    let has_decimals = unified != value;
    match serde_path_to_error::deserialize(unified) {
        Ok(read) if has_decimals => Ok(read),
        // A syntax error in valid JSON is an enum of another form, which only the other error
        // describes.
        Err(better) if has_decimals || error.inner().is_syntax() => Err(located(&better)),
        _ => Err(located(error)),
    }
}

/// Turns decimals such as 7.0 and 70e-1 into integers. In JSON Schema and OpenAPI, these are the same
/// numbers.
pub(crate) fn unify_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if number.is_f64()
                && let Some(integer) = number.as_f64().and_then(integer)
            {
                *number = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unify_integers),
        Value::Object(fields) => fields.values_mut().for_each(unify_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Returns a whole number as an integer, if it is below 2^53. Larger ones were rounded when they were
/// parsed.
fn integer(number: f64) -> Option<i64> {
    if number.abs() < 9_007_199_254_740_992.0 {
        number.to_string().parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_terminal_control_characters() {
        assert_eq!(
            printable("a\u{1b}[31m\u{202e}\u{0}é\"b"),
            "a\\u{1b}[31m\\u{202e}\\0é\"b"
        );
    }

    #[test]
    fn truncates_long_text() {
        let cut = printable(&"ü".repeat(100_000));
        assert_eq!(cut.chars().count(), 61);
        assert!(cut.ends_with('…'));
        let long = format!("\"{}\"", "a".repeat(100_000));
        let error = read_json::<u8>(long.as_bytes()).unwrap_err();
        assert!(error.starts_with("invalid type: string \"aaa"), "{error}");
        assert!(error.contains("a…a"), "{error}");
        assert!(
            error.ends_with("expected u8 at line 1 column 100002"),
            "{error}"
        );
    }

    #[test]
    fn a_whole_decimal_is_an_integer() {
        for (json, unified) in [
            (
                r#"{"7.0":[7.0,-1.50e1,-0.0,25]}"#,
                r#"{"7.0":[7,-15,0,25]}"#,
            ),
            ("[1E3,70e-1,7.5]", "[1000,7,7.5]"),
        ] {
            let mut value = serde_json::from_str(json).unwrap();
            unify_integers(&mut value);
            assert_eq!(value.to_string(), unified, "{json}");
        }
        // Rounded, or as it is written: that depends on what else uses serde_json.
        let mut large = serde_json::from_str("9007199254740993.0").unwrap();
        unify_integers(&mut large);
        assert_eq!(large.as_i64(), None);
        assert_eq!(read_json(b"[7.0, 8]"), Ok(vec![7, 8]));
        let error = read_json::<Vec<u8>>(b"[7.0, true]").unwrap_err();
        assert_eq!(error, "`[1]`: invalid type: boolean `true`, expected u8");
    }
}
