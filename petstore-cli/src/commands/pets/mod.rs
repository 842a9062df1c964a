//! `petstore pets …`: the animals.

mod create;
mod get;
mod list;
mod shared;

pub(crate) use create::Create;
pub(crate) use get::Get;
pub(crate) use list::List;
