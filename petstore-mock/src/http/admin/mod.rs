//! The administration of the mock: the paths under `/_mock`.

mod assets;
mod auth;
mod events;
mod handlers;
mod input;
mod router;

pub(super) use self::router::router;
