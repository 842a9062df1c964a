//! Escapes text from the service for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// Returns whether a character can move the cursor, or hide or reorder text: C0, DEL, C1,
/// bidirectional controls, zero-width characters, line separators and tags. The joiners U+200C and
/// U+200D are part of emoji and of several scripts.
pub(crate) fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Returns text for one line. Escapes harmful characters and backslashes, as `\n`, `\\` or
/// `\u{202e}`, so that different texts look different.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\\' || is_harmful(c), readable)
}

/// Returns text for several lines: like `line`, but keeps backslashes, line breaks and tabs.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escape(
        text,
        |c| !matches!(c, '\n' | '\t') && is_harmful(c),
        readable,
    )
}

/// Returns the start of what another program said, for one line.
pub(crate) fn start(text: &str) -> String {
    const MAX_SHOWN: usize = 300;

    let start: String = text.chars().take(MAX_SHOWN).collect();
    line(&start).into_owned()
}

/// Returns a JSON document with every harmful character as `\uXXXX`.
fn json(text: &str) -> Cow<'_, str> {
    escape(text, is_harmful, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

pub(crate) fn to_text(document: &Value) -> String {
    json(&document.to_string()).into_owned()
}

/// Quotes text as one word of a POSIX shell.
pub(crate) fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Quotes a path as one word of a POSIX shell. The `~` of the home folder stays outside the quotes.
pub(crate) fn shell_path(shown: &str) -> String {
    match shown.strip_prefix("~/") {
        Some(below) => format!("~/{}", shell(below)),
        None => shell(shown),
    }
}

fn readable(c: char, out: &mut String) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
    }
}

fn escape(
    text: &str,
    needs: impl Fn(char) -> bool,
    replace: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.chars().any(&needs) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match needs(c) {
            true => replace(c, &mut out),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_every_kind_of_harmful_character() {
        assert_eq!(
            line("a\u{1b}[31m\u{7f}\u{9b}2J"),
            "a\\u{1b}[31m\\u{7f}\\u{9b}2J"
        );
        assert_eq!(line("\u{202e}evil\u{200b}"), "\\u{202e}evil\\u{200b}");
        assert_eq!(line("a\tb\nc\\n"), "a\\tb\\nc\\\\n");
        assert_eq!(lines("a\tb\nc\\n\r"), "a\tb\nc\\n\\r");
        assert_eq!(json("\u{9b}\u{e0041}"), "\\u009b\\udb40\\udc41");
    }

    #[test]
    fn leaves_ordinary_text_alone() {
        for text in ["Rex", "Žofka", "犬", "🐕", "a b", "👨\u{200d}👩\u{200d}👧"] {
            assert_eq!(line(text), text);
        }
    }
}
