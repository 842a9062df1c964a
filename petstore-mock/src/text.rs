//! Handles text from clients: quotes it safely in messages, finds similar names, and parses names and
//! JSON.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, IgnoredAny, IntoDeserializer as _},
};
use strsim::osa_distance;

/// Returns `text`, truncated to 60 characters, with control characters escaped.
pub(crate) fn printable(text: &str) -> String {
    shortened(text, 60, 0)
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

/// Returns the candidate most similar to `text`, if it has at most `max_typos` typing errors
/// (wrong, missing, surplus or swapped letters). `spelled` returns the text of a candidate.
pub(crate) fn nearest<T>(
    text: &str,
    max_typos: usize,
    candidates: impl Iterator<Item = T>,
    spelled: impl Fn(&T) -> String,
) -> Option<T> {
    // The comparison takes quadratic time, so long texts are not compared.
    if text.len() > 100 {
        return None;
    }
    let typos = |it: T| (osa_distance(text, &spelled(&it)), it);
    let near = candidates
        .map(typos)
        .filter(|(typos, _)| *typos <= max_typos);
    near.min_by_key(|(typos, _)| *typos)
        .map(|(_, candidate)| candidate)
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
    fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let read = serde_path_to_error::deserialize(&mut deserializer);
        let read = read.map_err(|error| match error.path().to_string().as_str() {
            "." | "?" => error.inner().to_string(),
            path => format!("`{path}`: {}", error.inner()),
        });
        read.and_then(|value| {
            deserializer
                .end()
                .map(|()| value)
                .map_err(|error| error.to_string())
        })
    }
    // The error may quote a long text of the client.
    read(text)
        .or_else(|error| read(unify_integers(text).ok_or(error)?.as_bytes()))
        .map_err(|error| shortened(&error, 200, 100))
}

/// Rewrites numbers such as 7.0 and 70e-1 as integers, and pads them, so that lines and columns stay
/// the same where possible. Returns `None` if the text is not JSON.
pub(crate) fn unify_integers(json: &[u8]) -> Option<String> {
    serde_json::from_slice::<IgnoredAny>(json).ok()?;
    let mut rest = str::from_utf8(json).ok()?;
    let mut out = String::with_capacity(rest.len());
    while let Some(start) = rest.find(|it: char| it == '"' || it == '-' || it.is_ascii_digit()) {
        let (before, found) = rest.split_at(start);
        // The text is valid JSON, so a complete string or number begins here.
        let mut values = serde_json::Deserializer::from_str(found).into_iter::<IgnoredAny>();
        values.next();
        let (token, after) = found.split_at(values.byte_offset());
        out.push_str(before);
        match int64(token) {
            Some(integer) => out.push_str(&format!("{integer:<width$}", width = token.len())),
            None => out.push_str(token),
        }
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// Parses a number that is exactly an int64, such as `7`, `7.0` or `70e-1`. In JSON Schema and
/// OpenAPI, these are the same integer.
fn int64(json: &str) -> Option<i64> {
    if let Ok(number) = json.parse() {
        return Some(number);
    }
    let (sign, rest) = json
        .strip_prefix('-')
        .map_or(("", json), |rest| ("-", rest));
    if !rest.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    // The number of zeros after the significant digits; negative for decimals.
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let zeros = exponent
        .parse::<i64>()
        .ok()?
        .checked_add(i64::try_from(trailing).ok()?)?;
    let zeros = usize::try_from(zeros.checked_sub(i64::try_from(fraction.len()).ok()?)?).ok()?;
    // The number has more digits than any int64.
    if significant.len().saturating_add(zeros) > 19 {
        return None;
    }
    format!("{sign}{significant}{}", "0".repeat(zeros))
        .parse()
        .ok()
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
    fn unifies_integers_outside_strings_and_keeps_the_columns() {
        for (json, unified) in [
            (
                r#"{"7.0":[7.0,-1.50e1,0.0,25]}"#,
                r#"{"7.0":[7  ,-15    ,0  ,25]}"#,
            ),
            (r#"["a\"7.0\\",7.0] "#, r#"["a\"7.0\\",7  ] "#),
            (
                "[9007199254740993.0,9.223372036854775807e18]",
                "[9007199254740993  ,9223372036854775807    ]",
            ),
            (
                "[7.5,1e400,9223372036854775808.0]",
                "[7.5,1e400,9223372036854775808.0]",
            ),
            ("1E3", "1000"),
        ] {
            assert_eq!(unify_integers(json.as_bytes()).as_deref(), Some(unified));
        }
        for text in ["1.", "[7.0", "{7.0:1}", ""] {
            assert_eq!(unify_integers(text.as_bytes()), None, "{text}");
        }
    }
}
