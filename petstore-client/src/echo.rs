//! Takes the key out of what a service says: one that repeats it must not bring it into errors,
//! which are shown and logged.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

/// A key that is shorter is not looked for: it may be any word.
const SHORTEST: usize = 8;
const INSTEAD: &[u8] = b"(the API key)";

/// The key of a request, to be taken out of its answer.
#[derive(Debug, Clone)]
pub(crate) struct Echo(HeaderValue);

impl Echo {
    pub(crate) fn of(authorization: &HeaderValue) -> Self {
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

    /// Takes the key out of the values of headers.
    pub(crate) fn remove(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            if let Some(clean) = self.replaced(value.as_bytes()) {
                *value = HeaderValue::from_bytes(&clean)
                    .unwrap_or_else(|_| HeaderValue::from_static("(the API key)"));
            }
        }
    }

    fn replaced(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let header = self.0.as_bytes();
        let key = header.strip_prefix(b"Bearer ").unwrap_or(header);
        if key.len() < SHORTEST || key.len() > bytes.len() {
            return None;
        }
        let mut clean = Vec::new();
        let mut rest = bytes;
        while let Some(at) = rest.windows(key.len()).position(|window| window == key) {
            clean.extend_from_slice(&rest[..at]);
            clean.extend_from_slice(INSTEAD);
            rest = &rest[at + key.len()..];
        }
        if rest.len() == bytes.len() {
            return None;
        }
        clean.extend_from_slice(rest);
        Some(clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_each_copy_of_the_key_out() {
        let echo = Echo::of(&HeaderValue::from_static("Bearer s3cret-key"));
        let clean = echo.removed(Bytes::from_static(b"<s3cret-key> Bearer s3cret-key s3cret-ke"));
        assert_eq!(clean, "<(the API key)> Bearer (the API key) s3cret-ke");
        let mut headers = HeaderMap::new();
        headers.insert("location", HeaderValue::from_static("/?k=s3cret-key"));
        echo.remove(&mut headers);
        assert_eq!(headers["location"], "/?k=(the API key)");
    }

    #[test]
    fn leaves_a_short_key_alone_which_may_be_any_word() {
        let echo = Echo::of(&HeaderValue::from_static("Bearer key"));
        assert_eq!(echo.removed(Bytes::from_static(b"no key")), "no key");
    }
}
