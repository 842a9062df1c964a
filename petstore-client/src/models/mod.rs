//! The service's resources (specification, section 2).

pub(crate) mod exact;
mod extra_fields;
mod pet;
mod status;

pub(crate) use self::pet::ReceivedPet;
pub use self::pet::{NewPet, Pet};
pub use self::status::PetStatus;

#[cfg(test)]
mod tests;
