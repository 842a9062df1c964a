//! Tests of the limiter.

mod bounds;
#[cfg(feature = "file-store")]
mod file;
mod grants;
mod members;
#[cfg(shuttle)]
mod model;
pub(super) mod rules;
mod updates;
mod view;
pub(super) mod waiting;
