//! What can go wrong with a call, as one opaque type.
//!
//! Whether a failed attempt is worth another is left to `retry`.

mod fault;
mod kind;
mod limited;
mod opaque;
mod predicates;

pub(crate) use fault::ServiceFault;
pub(crate) use kind::{BoxError, Kind, Limit, Undecodable};
pub use limited::Quota;
pub(crate) use limited::RateLimited;
pub use opaque::Error;
pub(crate) use opaque::Journey;
