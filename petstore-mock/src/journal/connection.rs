//! Tells the report which connections are open.

use std::sync::Arc;

use super::Journal;

/// An open connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    journal: Arc<Journal>,
    number: u64,
}

impl OpenConnection {
    pub(crate) fn new(journal: Arc<Journal>, number: u64) -> Self {
        journal.connected(number);
        Self { journal, number }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.journal.disconnected(self.number);
    }
}
