//! What the store holds when the server starts: pets of its own, those of a file, or those of a test.

mod builtin;
mod error;
mod file;
mod value;

pub use self::{
    error::SeedError,
    value::{Seed, SeedPet},
};
