//! The commands: each is one file, its arguments (whose docs are the help) and its run.

mod api;
pub(crate) mod auth;
pub(crate) mod completions;
pub(crate) mod config;
mod docs;
mod doctor;
mod help;
mod limits;
mod man;
#[cfg(feature = "mock")]
mod mock;
pub(crate) mod pets;
pub(crate) mod store;

pub(crate) use api::Api;
pub(crate) use completions::Completions;
pub(crate) use docs::Docs;
pub(crate) use doctor::Doctor;
pub(crate) use help::Help;
pub(crate) use limits::Limits;
pub(crate) use man::Man;
#[cfg(feature = "mock")]
pub(crate) use mock::Mock;
