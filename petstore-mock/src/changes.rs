//! Who wants to hear of it is told that something was changed, from a test or by administration. What a
//! request changes is left to the journal, which tells of the request itself.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::broadcast;

/// How many changes a listener may be behind before it misses some.
const BEHIND: usize = 64;

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Clock,
    Keys,
    Faults,
    Pets,
    Journal,
}

impl What {
    pub(crate) const ALL: [Self; 5] =
        [Self::Clock, Self::Keys, Self::Faults, Self::Pets, Self::Journal];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Keys => "keys",
            Self::Faults => "faults",
            Self::Pets => "pets",
            Self::Journal => "journal",
        }
    }
}

/// The changes of a server; its clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    sender: broadcast::Sender<What>,
    boundaries: Arc<AtomicU64>,
}

impl Changes {
    /// Tells whoever listens that this was changed.
    pub(crate) fn tell(&self, what: What) {
        // Nobody listens, most of the time.
        let _ = self.sender.send(what);
    }

    /// Marks that a test begins or ends: what a client did before is not held against it after.
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
