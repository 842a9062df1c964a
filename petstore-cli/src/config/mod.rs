//! The configuration file: what can be set, what is set, and changing it with comments kept.

mod edit;
mod file;
mod setting;

pub(crate) use edit::Edit;
pub(crate) use file::Config;
pub(crate) use setting::Setting;
