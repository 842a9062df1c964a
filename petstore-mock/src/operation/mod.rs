//! The operations of the service: by name, by method and path, and by what was likely meant.

mod name;
mod nearest;

pub(crate) use self::name::REMOVAL;
pub use self::name::{Operation, ParseOperationError};
