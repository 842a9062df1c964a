//! Makes text from elsewhere fit for a message: one line, printable, of bounded length.

use std::fmt::Write as _;

/// Returns at most `max` characters of `text`, with everything that could act on a terminal or
/// break a line written as an escape.
pub(crate) fn printable(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    for (count, c) in text.trim().chars().enumerate() {
        if count == max {
            out.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if is_unsafe(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns whether a character can move a cursor, hide text or reorder it: C0, DEL, C1, the
/// bidirectional controls, zero-width characters, line separators and tags.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_could_act_on_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}c", 99), "a\\u{1b}[2Jb\\u{202e}c");
        assert_eq!(printable("  two\r\nlines ", 99), "two  lines");
    }

    #[test]
    fn cuts_at_a_character_and_says_so() {
        assert_eq!(printable("äöü", 2), "äö…");
        assert_eq!(printable("äö", 2), "äö");
    }
}
