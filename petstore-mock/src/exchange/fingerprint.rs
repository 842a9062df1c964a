//! Whether two requests are the same: by a number that is the same for them.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Record;

impl Record {
    /// Returns a number that two requests share only if key, method, target and body are the same. A
    /// body that was not read to its end is like no other.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.key.as_ref().map(|key| key.number()).hash(&mut hasher);
        self.credentials.hash(&mut hasher);
        self.method.hash(&mut hasher);
        self.target.hash(&mut hasher);
        self.body.digest.ok_or(self.number).hash(&mut hasher);
        hasher.finish()
    }
}
