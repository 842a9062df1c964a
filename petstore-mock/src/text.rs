//! Text from clients: safe quotes in messages, suggestions, and JSON parsing.

use serde::de::DeserializeOwned;
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

/// Parses JSON. The error contains the path, line and column.
pub(crate) fn read_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut deserializer);
    let value = read.map_err(|error| match error.path().to_string().as_str() {
        "." | "?" => error.inner().to_string(),
        path => format!("`{path}`: {}", error.inner()),
    })?;
    deserializer.end().map(|()| value).map_err(|error| error.to_string())
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
