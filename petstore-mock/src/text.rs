//! Text from clients: safe quotes in messages, suggestions, and JSON parsing.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;
use strsim::osa_distance;

/// The maximum number of quoted characters in a message.
const MAX_QUOTED: usize = 60;

/// Returns `text`, truncated to 60 characters, with control characters escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_QUOTED) + 4);
    let mut characters = text.chars();
    for character in characters.by_ref().take(MAX_QUOTED) {
        match character {
            '"' | '\'' => out.push(character),
            // Escapes control, format (bidi) and unassigned characters, and keeps letters.
            other => out.extend(other.escape_debug()),
        }
    }
    if characters.next().is_some() {
        out.push('…');
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
    // Comparing takes quadratic time.
    if text.len() > 100 {
        return None;
    }
    let typos = |it: T| (osa_distance(text, &spelled(&it)), it);
    let near = candidates.map(typos).filter(|(typos, _)| *typos <= max_typos);
    near.min_by_key(|(typos, _)| *typos).map(|(_, candidate)| candidate)
}

/// Reads an existing field, including `null`.
pub(crate) fn present<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(from).map(Some)
}

/// Parses JSON. The error contains the path, line and column. 7.0 is an integer, as in JSON Schema.
pub(crate) fn read_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut deserializer);
    let read = read.map_err(|error| match error.path().to_string().as_str() {
        "." | "?" => error.inner().to_string(),
        path => format!("`{path}`: {}", error.inner()),
    });
    let whole = read
        .and_then(|value| deserializer.end().map(|()| value).map_err(|error| error.to_string()));
    whole.or_else(|error| {
        let mut json = serde_json::from_slice(text).map_err(|_| error.clone())?;
        unify_numbers(&mut json);
        serde_json::from_str(&json.to_string()).map_err(|_| error)
    })
}

/// Turns floats such as 7.0 into integers, as far as these are exact.
#[expect(clippy::cast_possible_truncation, reason = "it is checked to be an exact integer")]
pub(crate) fn unify_numbers(json: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match json {
        Value::Number(number) => {
            let float = number.as_f64().unwrap_or(f64::NAN);
            if float.fract() == 0.0 && float.abs() <= EXACT {
                *json = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unify_numbers),
        Value::Object(members) => members.values_mut().for_each(unify_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_terminal_control_characters() {
        assert_eq!(printable("a\u{1b}[31m\u{202e}\u{0}é\"b"), "a\\u{1b}[31m\\u{202e}\\0é\"b");
    }

    #[test]
    fn truncates_long_text() {
        let cut = printable(&"ü".repeat(100_000));
        assert_eq!(cut.chars().count(), MAX_QUOTED + 1);
        assert!(cut.ends_with('…'));
    }
}
