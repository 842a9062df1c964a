//! Tells of the changes that a test or the administration makes. Changes made by requests are in the
//! journal.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::watch;

/// The changes of a server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    sender: watch::Sender<()>,
    boundaries: Arc<AtomicU64>,
}

impl Changes {
    /// Tells that something has changed.
    pub(crate) fn notify(&self) {
        self.sender.send_replace(());
    }

    /// Marks the start or end of a test. The report's rules do not combine requests from both sides
    /// of it.
    pub(crate) fn mark_boundary(&self) {
        self.boundaries.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of boundaries so far.
    pub(crate) fn boundaries(&self) -> u64 {
        self.boundaries.load(Ordering::Relaxed)
    }

    /// Returns a receiver that is notified of each change.
    pub(crate) fn listen(&self) -> watch::Receiver<()> {
        self.sender.subscribe()
    }
}
