//! What the handlers share: the world they look at.

use std::sync::Arc;

use crate::world::World;

/// The world; its clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Admin(Arc<World>);

impl Admin {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self(world)
    }

    pub(super) fn world(&self) -> &Arc<World> {
        &self.0
    }
}
