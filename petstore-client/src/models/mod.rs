//! The service's resources (specification, section 2).

mod extra_fields;
mod pet;
mod status;

pub use self::pet::{NewPet, Pet};
pub use self::status::PetStatus;

#[cfg(test)]
mod tests;
