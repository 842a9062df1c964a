//! The administration of the mock.

mod assets;
mod clock;
mod events;
mod input;
mod keys;
mod metrics;
mod reports;
mod requests;
mod router;
mod state;

pub(super) use self::router::router;
