//! Makes text from the service harmless before it meets a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns whether a character can move the cursor, hide text or change its order: C0, DEL, C1,
/// the bidirectional controls, zero-width characters, line separators and tags.
pub(crate) fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Returns text for one line: what is harmful, and a backslash, becomes an escape such as `\n`,
/// `\\` or `\u{202e}`, so that no two texts look the same.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\\' || is_harmful(c))
}

/// Returns text for several lines: the same, with line breaks and tabs left as they are.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| !matches!(c, '\n' | '\t') && is_harmful(c))
}

/// Returns text as one word of a POSIX shell.
pub(crate) fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn escape(text: &str, needs: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&needs) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if !needs(c) => out.push(c),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_every_kind_of_harmful_character() {
        assert_eq!(line("a\u{1b}[31m\u{7f}\u{9b}2J"), "a\\u{1b}[31m\\u{7f}\\u{9b}2J");
        assert_eq!(line("\u{202e}evil\u{200b}"), "\\u{202e}evil\\u{200b}");
        assert_eq!(line("a\tb\nc\\n"), "a\\tb\\nc\\\\n");
        assert_eq!(lines("a\tb\nc\\n\r"), "a\tb\nc\\n\\r");
    }

    #[test]
    fn leaves_ordinary_text_alone() {
        for text in ["Rex", "Žofka", "犬", "🐕", "a b"] {
            assert!(matches!(line(text), Cow::Borrowed(same) if same == text));
        }
    }
}
