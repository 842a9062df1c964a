//! `petstore pets …`: the animals.

mod create;
mod export;
mod get;
mod import;
mod list;
mod shared;

pub(crate) use create::Create;
pub(crate) use export::Export;
pub(crate) use get::Get;
pub(crate) use import::Import;
pub(crate) use list::List;
