//! The keys the server knows: how each may be shown, and how they are taken out of what is shown. A key
//! may have been sent in a URL, a body or any header.

use std::{collections::HashMap, fmt, sync::Arc};

use super::{KeyLabel, fields::MASK};

/// A text that is as short as this and no longer is found by chance in others.
const SHORTEST: usize = 8;

/// Every key that was ever known, also those that were removed.
#[derive(Default)]
pub(crate) struct Keys {
    labels: HashMap<Box<str>, Arc<KeyLabel>>,
    /// Those that must not be shown, the longest first: of a key that begins with another the end
    /// would stay.
    secret: Vec<Box<[u8]>>,
}

impl Keys {
    /// Adds a key. If it is a secret it is never shown, unless it has fewer than 8 characters: such a
    /// one would blot out other texts.
    pub(crate) fn add(&mut self, key: &str, label: Arc<KeyLabel>, is_public: bool) {
        if self.labels.insert(key.into(), label).is_none() && !is_public && key.len() >= SHORTEST {
            self.secret.push(key.as_bytes().into());
            self.secret.sort_by_key(|key| std::cmp::Reverse(key.len()));
        }
    }

    /// Returns how a key may be shown, if it is known.
    pub(crate) fn label(&self, key: &str) -> Option<&KeyLabel> {
        self.labels.get(key).map(|label| &**label)
    }

    /// Returns the text without keys.
    pub(crate) fn bytes(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.first() {
            if let Some(key) = self.secret.iter().find(|key| rest.starts_with(key)) {
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

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.labels.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn takes_every_secret_out_the_longest_first() {
        let mut keys = Keys::default();
        for key in ["long-key", "long-key-2", "short", "long-key", "free-key"] {
            let is_public = key == "free-key";
            let label = KeyLabel::new(1, Plan::Free, key, is_public);
            keys.add(key, Arc::new(label), is_public);
        }
        let masked = keys.text("é/long-key-2?a=long-key&b=short&c=free-key…");
        assert_eq!(masked, "é/***?a=***&b=short&c=free-key…");
        assert_eq!(keys.text("long-ke"), "long-ke");
        assert_eq!(format!("{keys:?}"), "Keys(4)");
        assert!(keys.label("short").is_some() && keys.label("other").is_none());
    }
}
