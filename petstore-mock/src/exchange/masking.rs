//! Masks credentials: the server's keys wherever they were sent, and the values of all credential
//! fields.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::text::is_word;

/// The text that replaces a secret.
pub(super) const MASK: &str = "***";

/// Shorter keys may occur by chance in other texts, so they are masked only as whole words.
const MIN_SUBSTRING_LENGTH: usize = 8;

/// All secret keys, including removed ones. A key that begins with another key comes first, so
/// that it is masked completely.
#[derive(Default)]
pub(crate) struct Masker(Vec<Box<[u8]>>);

impl Masker {
    /// Adds a secret key, which is never shown from now on.
    pub(crate) fn add(&mut self, key: &str) {
        let key = key.as_bytes();
        if !key.is_empty() && !self.0.iter().any(|known| **known == *key) {
            self.0.push(key.into());
            self.0.sort_by_key(|key| std::cmp::Reverse(key.len()));
        }
    }

    /// Returns the bytes with all keys masked, including percent-encoded ones.
    pub(crate) fn bytes(&self, text: &[u8]) -> Vec<u8> {
        if self.0.is_empty() {
            return text.to_vec();
        }
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while let Some(first) = text.get(at) {
            if let Some(length) = self.0.iter().find_map(|key| key_at(text, at, key)) {
                out.extend_from_slice(MASK.as_bytes());
                at += length;
            } else {
                out.push(*first);
                at += 1;
            }
        }
        out
    }

    /// Returns the text with all keys masked.
    pub(crate) fn text(&self, text: &str) -> String {
        // Keys are ASCII, so masking splits no character.
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// Returns a request target with all keys and values of credential parameters masked.
    pub(crate) fn target(&self, target: &str) -> String {
        let Some((path, query)) = target.split_once('?') else {
            return self.text(target);
        };
        let decoded = |name| {
            percent_decode_str(name)
                .decode_utf8_lossy()
                .to_ascii_lowercase()
        };
        let masked = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_credential(&decoded(name)) => {
                Cow::Owned(format!("{name}={MASK}"))
            }
            _ => Cow::Borrowed(pair),
        });
        self.text(&format!("{path}?{}", masked.collect::<Vec<_>>().join("&")))
    }
}

/// Returns the length in bytes of a key at this position, if it is there.
fn key_at(text: &[u8], start: usize, key: &[u8]) -> Option<usize> {
    let mut at = start;
    for wanted in key {
        let (byte, length) = decoded_byte(text, at)?;
        if byte != *wanted {
            return None;
        }
        at += length;
    }
    (key.len() >= MIN_SUBSTRING_LENGTH || is_word(text, start..at)).then_some(at - start)
}

/// Returns the percent-decoded byte at this position, and its encoded length.
fn decoded_byte(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let first = *text.get(at)?;
    let digit = |place: usize| char::from(*text.get(place)?).to_digit(16);
    match (first, digit(at + 1), digit(at + 2)) {
        (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok().map(|byte| (byte, 3)),
        _ => Some((first, 1)),
    }
}

/// Whether a header field or query parameter is a credential, according to its name in lower case, such
/// as `authorization`, `x-api-key`, `x-auth-token` or `access_token`.
pub(crate) fn is_credential(name: &str) -> bool {
    let words: Vec<_> = name.split(['-', '_']).collect();
    let is_secret = |word: &&str| {
        matches!(
            *word,
            "authorization"
                | "auth"
                | "cookie"
                | "token"
                | "secret"
                | "password"
                | "apikey"
                | "credentials"
        )
    };
    words.iter().any(is_secret) || matches!(words[..], ["key"] | [.., "api", "key"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Masker {
        let mut keys = Masker::default();
        for key in ["long-key", "long-key-2", "short", "long-key"] {
            keys.add(key);
        }
        keys
    }

    #[test]
    fn takes_every_secret_out_the_longest_first() {
        let keys = keys();
        let masked = keys.text("é/long-key-2?a=long-key&b=short&c=free-key…");
        assert_eq!(masked, "é/***?a=***&b=***&c=free-key…");
        assert_eq!(keys.text("long-ke"), "long-ke");
    }

    #[test]
    fn finds_keys_that_are_percent_encoded_and_short_ones_as_words() {
        let keys = keys();
        for (sent, shown) in [
            ("/v1/%6cong%2Dkey/x", "/v1/***/x"),
            ("%6C%6F%6E%67%2D%6B%65%79", "***"),
            ("{\"note\":\"short\"}", "{\"note\":\"***\"}"),
            ("shorts and ashort", "shorts and ashort"),
            ("%73hort", "***"),
            ("100%", "100%"),
        ] {
            assert_eq!(keys.text(sent), shown);
        }
    }

    #[test]
    fn masks_the_values_of_credential_fields() {
        let keys = keys();
        for (sent, shown) in [
            (
                "/v1/pets?api_key=unknown&limit=5",
                "/v1/pets?api_key=***&limit=5",
            ),
            (
                "/v1/pets?ACCESS%5Ftoken=unknown",
                "/v1/pets?ACCESS%5Ftoken=***",
            ),
            ("/v1/pets?limit=5&token=", "/v1/pets?limit=5&token="),
            ("/v1/pets?q=long-key", "/v1/pets?q=***"),
            ("/v1/pets", "/v1/pets"),
        ] {
            assert_eq!(keys.target(sent), shown);
        }
        for name in [
            "x-api-key",
            "api-key",
            "x-auth-token",
            "proxy-authorization",
            "set-cookie",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["idempotency-key", "authority", "x-request-id", "accept"] {
            assert!(!is_credential(name), "{name}");
        }
    }
}
