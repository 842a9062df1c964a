//! Who wants to hear of it is told that something was changed, from a test or by administration. What a
//! request changes is left to the journal, which tells of the request itself.

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
pub(crate) struct Changes(broadcast::Sender<What>);

impl Changes {
    /// Tells whoever listens that this was changed.
    pub(crate) fn tell(&self, what: What) {
        // Nobody listens, most of the time.
        let _ = self.0.send(what);
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<What> {
        self.0.subscribe()
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self(broadcast::Sender::new(BEHIND))
    }
}
