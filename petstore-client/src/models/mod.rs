//! The service's resources as they travel (specification, section 2).
//!
//! What a response says around them (status, headers, paging) is left to `response` and `page`.

mod object;
mod pet;
mod status;

pub use pet::{NewPet, Pet};
pub use status::PetStatus;
