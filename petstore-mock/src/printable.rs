//! What a client sent, in messages: quoted safely, and compared with what was probably meant.

use strsim::osa_distance;

/// How many characters of a client's text a message quotes.
const LONGEST: usize = 60;

/// Returns `text`, cut to 60 characters, with whatever a terminal could stumble over escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(LONGEST) + 4);
    let mut characters = text.chars();
    for character in characters.by_ref().take(LONGEST) {
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

/// Returns the candidate that `text` most likely means, if it has at most so many typing errors (wrong,
/// missing, surplus or swapped letters); `spelled` is how a candidate is to be compared.
pub(crate) fn nearest<T>(
    text: &str,
    max_typos: usize,
    candidates: impl Iterator<Item = T>,
    spelled: impl Fn(&T) -> String,
) -> Option<T> {
    // To compare takes time that grows with the square of the length.
    if text.len() > 100 {
        return None;
    }
    let typos = |it: T| (osa_distance(text, &spelled(&it)), it);
    let near = candidates.map(typos).filter(|(typos, _)| *typos <= max_typos);
    near.min_by_key(|(typos, _)| *typos).map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        assert_eq!(printable("a\u{1b}[31m\u{202e}\u{0}é\"b"), "a\\u{1b}[31m\\u{202e}\\0é\"b");
    }

    #[test]
    fn cuts_what_is_long() {
        let cut = printable(&"ü".repeat(100_000));
        assert_eq!(cut.chars().count(), LONGEST + 1);
        assert!(cut.ends_with('…'));
    }
}
