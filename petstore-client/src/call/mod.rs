//! One call, from authorization to its response.

mod core;
mod lifecycle;
mod task;

pub(crate) use self::core::{Core, Removal, Request, additional_header};
pub use task::CallFuture;
pub(crate) use task::Decode;
