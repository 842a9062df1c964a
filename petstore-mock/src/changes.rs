//! Broadcasts the changes that a test or the administration makes. Changes made by requests are in
//! the journal.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde::Serialize;
use tokio::sync::broadcast;

/// A listener that lags behind by more changes than this misses some.
const MAX_LAG: usize = 64;

/// The part that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeKind {
    Clock,
    Keys,
    Faults,
    Pets,
    Journal,
}

impl ChangeKind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Clock,
        Self::Keys,
        Self::Faults,
        Self::Pets,
        Self::Journal,
    ];
}

/// The changes of a server. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    sender: broadcast::Sender<ChangeKind>,
    boundaries: Arc<AtomicU64>,
}

impl Changes {
    /// Broadcasts a change.
    pub(crate) fn notify(&self, what: ChangeKind) {
        // An error only means that nobody listens, which is usual.
        let _ = self.sender.send(what);
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

    pub(crate) fn listen(&self) -> broadcast::Receiver<ChangeKind> {
        self.sender.subscribe()
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(MAX_LAG),
            boundaries: Arc::default(),
        }
    }
}
