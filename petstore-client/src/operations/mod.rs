//! The service's operations, as calls that can be stored, moved and spawned.

mod call;
mod limits;
mod list;
mod pages;
mod pets;
mod raw;

pub use call::{Call, CallFuture, ResponseFuture};
pub use limits::KeyLimits;
pub use list::ListPets;
pub use pages::{Items, Pages};
pub use pets::{Pets, Store};
pub use raw::RawRequest;
