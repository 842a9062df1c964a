//! The commands: each is one file, its arguments (whose docs are the help) and its run.

mod api;
pub(crate) mod auth;
pub(crate) mod config;
mod limits;
pub(crate) mod pets;
pub(crate) mod store;

pub(crate) use api::Api;
pub(crate) use limits::Limits;
