//! A guard that puts everything back.

use std::sync::Arc;

use crate::world::{Snapshot, World};

/// Puts the pets, the orders, and what the keys have used back to what they were, when it is dropped:
/// see [`MockServer::scope`](crate::MockServer::scope).
#[derive(Debug)]
#[must_use = "it puts everything back as soon as it is dropped"]
pub struct Scope {
    world: Arc<World>,
    number: u64,
    before: Snapshot,
}

impl Scope {
    pub(crate) fn new(world: &Arc<World>, name: &str) -> Self {
        let number = world.journal().open_scope(name);
        Self { number, before: world.snapshot(), world: Arc::clone(world) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // A store that can't be written keeps what it has; there is nobody to tell here.
        let _ = self.world.restore_now(&self.before);
        self.world.journal().close_scope(self.number);
    }
}
