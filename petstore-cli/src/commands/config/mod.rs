//! `petstore config …`: the configuration.

mod choose;
mod get;
mod list;
mod path;
mod set;
mod unset;

pub(crate) use choose::Use;
pub(crate) use get::Get;
pub(crate) use list::List;
pub(crate) use path::Path;
pub(crate) use set::Set;
pub(crate) use unset::Unset;
