//! Takes keys out of what is shown: a key may have been sent in a URL, a body or any header.

use super::fields::MASK;

/// A text that is as short as this and no longer is found by chance in others.
const SHORTEST: usize = 8;

/// The keys that must not be shown.
#[derive(Default)]
pub(crate) struct Mask(Vec<Box<[u8]>>);

impl Mask {
    /// Adds a key. One of fewer than 8 characters is not looked for: it would blot out other texts.
    pub(crate) fn add(&mut self, key: &str) {
        if key.len() >= SHORTEST && !self.0.iter().any(|one| **one == *key.as_bytes()) {
            self.0.push(key.as_bytes().into());
            // A key that begins with another must go first, or its end would stay.
            self.0.sort_by_key(|key| std::cmp::Reverse(key.len()));
        }
    }

    /// Returns the text without keys.
    pub(crate) fn bytes(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.first() {
            if let Some(key) = self.0.iter().find(|key| rest.starts_with(key)) {
                out.extend_from_slice(MASK.as_bytes());
                rest = rest.get(key.len()..).unwrap_or_default();
            } else {
                out.push(*first);
                rest = rest.get(1..).unwrap_or_default();
            }
        }
        out
    }

    /// Returns the text without keys.
    pub(crate) fn text(&self, text: &str) -> String {
        // Keys are ASCII, so no character is cut.
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Mask").field(&self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_every_key_out_the_longest_first() {
        let mut mask = Mask::default();
        for key in ["long-key", "long-key-2", "short", "long-key"] {
            mask.add(key);
        }
        assert_eq!(mask.text("é/long-key-2?a=long-key&b=short…"), "é/***?a=***&b=short…");
        assert_eq!(mask.text("long-ke"), "long-ke");
        assert_eq!(format!("{mask:?}"), "Mask(2)");
    }
}
