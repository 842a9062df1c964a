//! Whether two requests are the same: by a number that is the same for them.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Record;

impl Record {
    /// Returns a number that two requests share only if key, method, target and body are the same:
    /// of a body, its first 16 KiB and its length.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.key.as_ref().map(|key| key.number()).hash(&mut hasher);
        self.credentials.hash(&mut hasher);
        self.method.hash(&mut hasher);
        self.target.hash(&mut hasher);
        self.body.start.hash(&mut hasher);
        self.body.length.hash(&mut hasher);
        hasher.finish()
    }
}
