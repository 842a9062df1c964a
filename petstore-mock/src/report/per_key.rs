//! Something for each key: by its number, and one for all who have no valid key.

use crate::exchange::Record;

/// A value for each key that was seen.
#[derive(Debug)]
pub(super) struct PerKey<T>(Vec<T>);

impl<T: Default> PerKey<T> {
    /// Returns the value for the key of a request.
    pub(super) fn of(&mut self, record: &Record) -> &mut T {
        let number = record.key.as_ref().map_or(0, |key| key.number()) as usize;
        if number >= self.0.len() {
            self.0.resize_with(number + 1, T::default);
        }
        &mut self.0[number]
    }
}

impl<T> Default for PerKey<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
