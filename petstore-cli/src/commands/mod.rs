//! The commands. The doc comments of their arguments are the help texts.

pub(crate) mod api;
pub(crate) mod args;
pub(crate) mod auth;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
mod dry_run;
pub(crate) mod help;
mod import;
pub(crate) mod limits;
pub(crate) mod man;
pub(crate) mod pets;
pub(crate) mod store;
