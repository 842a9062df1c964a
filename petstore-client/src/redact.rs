//! Makes untrusted text safe to show, without the API key and terminal escapes.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

/// Shorter keys are not removed, because any word may contain them.
const MIN_KEY_LENGTH: usize = 8;
const REPLACEMENT: &[u8] = b"(the API key)";

/// Removes the API key of a request from its response.
#[derive(Debug, Clone)]
pub(crate) struct Redactor(HeaderValue);

impl Redactor {
    pub(crate) fn new(authorization: &HeaderValue) -> Self {
        Self(authorization.clone())
    }

    /// Returns the bytes without the key.
    pub(crate) fn removed(&self, bytes: Bytes) -> Bytes {
        match self.replaced(&bytes) {
            Some(clean) => clean.into(),
            None => bytes,
        }
    }

    /// Returns the text without the key.
    pub(crate) fn removed_from_text(&self, text: String) -> String {
        match self.replaced(text.as_bytes()) {
            Some(clean) => String::from_utf8_lossy(&clean).into_owned(),
            None => text,
        }
    }

    /// Removes the key from the values of headers.
    pub(crate) fn remove(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            if let Some(clean) = self.replaced(value.as_bytes()) {
                *value = HeaderValue::from_bytes(&clean)
                    .unwrap_or_else(|_| HeaderValue::from_static("(the API key)"));
            }
        }
    }

    fn key(&self) -> Option<&[u8]> {
        let header = self.0.as_bytes();
        let key = header.strip_prefix(b"Bearer ").unwrap_or(header);
        (key.len() >= MIN_KEY_LENGTH).then_some(key)
    }

    fn replaced(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let key = self.key()?;
        let mut found = memchr::memmem::find_iter(bytes, key).peekable();
        found.peek()?;
        let mut clean = Vec::new();
        let mut from = 0;
        for at in found {
            clean.extend_from_slice(&bytes[from..at]);
            clean.extend_from_slice(REPLACEMENT);
            from = at + key.len();
        }
        clean.extend_from_slice(&bytes[from..]);
        Some(clean)
    }
}

/// Returns at most `max` characters of `text`. Escapes characters that could control a terminal or
/// break a line.
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

/// Returns whether a character can move the cursor, or hide or reorder text: C0, DEL, C1,
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
    fn takes_each_copy_of_the_key_out() {
        let redactor = Redactor::new(&HeaderValue::from_static("Bearer s3cret-key"));
        let clean =
            redactor.removed(Bytes::from_static(b"<s3cret-key> Bearer s3cret-key s3cret-ke"));
        assert_eq!(clean, "<(the API key)> Bearer (the API key) s3cret-ke");
        let mut headers = HeaderMap::new();
        headers.insert("location", HeaderValue::from_static("/?k=s3cret-key"));
        redactor.remove(&mut headers);
        assert_eq!(headers["location"], "/?k=(the API key)");
    }

    #[test]
    fn leaves_a_short_key_alone_which_may_be_any_word() {
        let redactor = Redactor::new(&HeaderValue::from_static("Bearer key"));
        assert_eq!(redactor.removed(Bytes::from_static(b"no key")), "no key");
    }

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
