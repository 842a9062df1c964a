//! Makes what a client sent fit to be quoted in a message: short, and without control characters.
//! Where it is quoted, and why, is the caller's business.

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
