//! Makes untrusted text safe to show, without the API key and terminal escapes.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

/// Shorter keys are not removed, because any word may contain them.
const MIN_KEY_LENGTH: usize = 8;
const REPLACEMENT: &[u8] = b"[hidden]";

/// Removes the API key of a request from its response.
#[derive(Debug, Clone)]
pub(crate) struct Redactor(HeaderValue);

impl Redactor {
    pub(crate) fn new(authorization: &HeaderValue) -> Self {
        Self(authorization.clone())
    }

    /// Returns the bytes without the key.
    pub(crate) fn removed(&self, bytes: Bytes) -> Bytes {
        match self.key().and_then(|key| without(key, &bytes)) {
            Some(clean) => clean.into(),
            None => bytes,
        }
    }

    /// Removes the key from the values of headers.
    pub(crate) fn remove(&self, headers: &mut HeaderMap) {
        let Some(key) = self.key() else { return };
        for value in headers.values_mut() {
            if let Some(clean) = without(key, value.as_bytes()) {
                *value = HeaderValue::from_bytes(&clean)
                    .unwrap_or_else(|_| HeaderValue::from_static("[hidden]"));
            }
        }
    }

    fn key(&self) -> Option<&[u8]> {
        let header = self.0.as_bytes();
        let key = header.strip_prefix(b"Bearer ").unwrap_or(header);
        (key.len() >= MIN_KEY_LENGTH).then_some(key)
    }
}

/// Returns bytes without the key; `None` if they do not contain it.
fn without(key: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() < key.len() {
        return None;
    }
    let mut clean = Vec::new();
    let mut from = 0;
    for at in memchr::memchr3_iter(key[0], b'\\', b'%', bytes) {
        if at >= from
            && let Some(length) = written_length(&bytes[at..], key)
        {
            clean.extend_from_slice(&bytes[from..at]);
            clean.extend_from_slice(REPLACEMENT);
            from = at + length;
        }
    }
    if from == 0 {
        return None;
    }
    clean.extend_from_slice(&bytes[from..]);
    Some(clean)
}

/// Returns the length of the key at the start of a text, if it is there. JSON may write any character
/// of it as an escape (RFC 8259, section 7), and so may a URL (RFC 3986, section 2.1).
fn written_length(text: &[u8], key: &[u8]) -> Option<usize> {
    key.iter().try_fold(0, |at, byte| {
        let is_code = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).ok();
            digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) == Some((*byte).into())
        };
        match &text[at..] {
            [b'\\', b'u', digits @ ..] if digits.get(..4).is_some_and(is_code) => Some(at + 6),
            [b'\\', next @ (b'/' | b'"' | b'\\'), ..] if next == byte => Some(at + 2),
            [b'%', digits @ ..] if digits.get(..2).is_some_and(is_code) => Some(at + 3),
            [next, ..] if next == byte => Some(at + 1),
            _ => None,
        }
    })
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
/// bidirectional controls, zero-width characters, line separators and tags. The joiners U+200C and
/// U+200D are part of emoji and of several scripts.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::cases::cases;

    #[test]
    fn takes_each_copy_of_the_key_out() {
        let redactor = Redactor::new(&HeaderValue::from_static("Bearer s3cret-key"));
        let clean = redactor.removed(Bytes::from_static(
            b"<s3cret-key> Bearer s3cret-key s3cret-ke",
        ));
        assert_eq!(clean, "<[hidden]> Bearer [hidden] s3cret-ke");
        let mut headers = HeaderMap::new();
        headers.insert("location", HeaderValue::from_static("/?k=s3cret-key"));
        redactor.remove(&mut headers);
        assert_eq!(headers["location"], "/?k=[hidden]");
    }

    #[test]
    fn takes_the_key_out_however_a_url_writes_it() {
        let redactor = Redactor::new(&HeaderValue::from_static("Bearer s3/+%=key"));
        for written in ["s3/+%=key", "s3%2F%2B%25%3Dkey", "%733%2f+%25=%6bey"] {
            let mut headers = HeaderMap::new();
            let link = HeaderValue::try_from(format!("</pets?k={written}&n=%73>")).unwrap();
            headers.insert("link", link);
            redactor.remove(&mut headers);
            assert_eq!(headers["link"], "</pets?k=[hidden]&n=%73>", "{written}");
        }
    }

    #[test]
    fn leaves_what_is_almost_the_key() {
        let redactor = Redactor::new(&HeaderValue::from_static("Bearer s3/ret\"\\key"));
        for other in [r"s3\\/ret", r"\u00733/ret\u00", r"\u0+73", "s3/ret\"\\ke"] {
            assert_eq!(redactor.removed(Bytes::from(other)), other);
        }
    }

    #[test]
    fn leaves_a_short_key_alone_which_may_be_any_word() {
        let redactor = Redactor::new(&HeaderValue::from_static("Bearer key"));
        assert_eq!(redactor.removed(Bytes::from_static(b"no key")), "no key");
    }

    #[test]
    fn escapes_characters_that_control_a_terminal() {
        assert_eq!(
            printable("a\u{1b}[2Jb\u{202e}c", 99),
            "a\\u{1b}[2Jb\\u{202e}c"
        );
        assert_eq!(printable("  two\r\nlines ", 99), "two  lines");
    }

    #[test]
    fn cuts_at_a_character_and_says_so() {
        assert_eq!(printable("äöü", 2), "äö…");
        assert_eq!(printable("äö", 2), "äö");
    }

    proptest! {
        #![proptest_config(cases(2_000))]

        #[test]
        fn the_key_is_removed_however_it_is_written_and_nothing_else(
            key in "[!-~]{8,12}",
            parts in vec(("[ -!#-\\[\\]-~é\n]{0,20}", vec(0..3_u8, 12)), 1..4),
        ) {
            let redactor = Redactor::new(&HeaderValue::from_str(&format!("Bearer {key}")).unwrap());
            let (mut written, mut expected) = (String::new(), String::new());
            for (between, forms) in &parts {
                prop_assume!(!between.contains(&key[..2]));
                let escaped = key.chars().zip(forms).map(|(c, form)| match (form, c) {
                    (0, c) if c != '\\' => c.to_string(),
                    (1, c @ ('"' | '\\' | '/')) => format!("\\{c}"),
                    (_, c) => format!("\\u{:04X}", u32::from(c)),
                });
                written += &format!("{between}|{}|", escaped.collect::<String>());
                expected += &format!("{between}|[hidden]|");
            }
            prop_assert_eq!(redactor.removed(Bytes::from(written)), Bytes::from(expected.clone()));
            let shown = printable(&expected, 64 * 1024);
            prop_assert_eq!(shown, expected.trim().replace('\n', " "));
        }
    }
}
