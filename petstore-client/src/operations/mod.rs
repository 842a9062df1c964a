//! The service's operations, as calls that are owned: they may be moved, kept and spawned.

mod call;
mod list;
mod pets;
mod raw;

pub use call::Call;
pub use list::ListPets;
pub use pets::{Pets, Store};
pub use raw::RawRequest;

pub use crate::call::CallFuture;
