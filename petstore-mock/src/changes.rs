//! Broadcasts changes that a test or the administration made. The changes that requests make are in the
//! journal.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::broadcast;

/// How many changes a listener may be behind before it misses some.
const BEHIND: usize = 64;

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum What {
    Clock,
    Keys,
    Faults,
    Pets,
    Journal,
}

/// The changes of a server; its clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    sender: broadcast::Sender<What>,
    boundaries: Arc<AtomicU64>,
}

impl Changes {
    /// Broadcasts that this was changed.
    pub(crate) fn tell(&self, what: What) {
        // Most of the time there is no listener.
        let _ = self.sender.send(what);
    }

    /// Marks that a test begins or ends, which the rules of the report don't look across.
    pub(crate) fn mark_boundary(&self) {
        self.boundaries.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many boundaries there were.
    pub(crate) fn boundaries(&self) -> u64 {
        self.boundaries.load(Ordering::Relaxed)
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<What> {
        self.sender.subscribe()
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BEHIND), boundaries: Arc::default() }
    }
}
