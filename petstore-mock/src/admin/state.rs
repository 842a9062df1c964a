//! What the handlers share: the world they look at, and who wants to hear of what they change.

use std::{fmt, sync::Arc};

use tokio::sync::broadcast;

use crate::world::World;

/// How many changes a listener may be behind before it misses some.
const BEHIND: usize = 64;

/// What was changed by administration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Clock,
    Keys,
    Faults,
    Pets,
    Journal,
}

impl What {
    pub(super) const ALL: [Self; 5] =
        [Self::Clock, Self::Keys, Self::Faults, Self::Pets, Self::Journal];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Keys => "keys",
            Self::Faults => "faults",
            Self::Pets => "pets",
            Self::Journal => "journal",
        }
    }
}

/// The world and its listeners; its clones are the same.
#[derive(Clone)]
pub(super) struct Admin {
    world: Arc<World>,
    changes: broadcast::Sender<What>,
}

impl Admin {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self { world, changes: broadcast::Sender::new(BEHIND) }
    }

    pub(super) fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Tells whoever listens that this was changed.
    pub(super) fn changed(&self, what: What) {
        // Nobody listens, most of the time.
        let _ = self.changes.send(what);
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<What> {
        self.changes.subscribe()
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Admin").field(&self.world).finish()
    }
}
