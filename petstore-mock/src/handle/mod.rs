//! Typed handles on a running server, for tests in the same process: its pets, orders and keys, and a
//! guard that puts everything back.

mod keys;
mod orders;
mod pets;
mod scope;

pub use self::{
    keys::{Key, Keys},
    orders::Orders,
    pets::Pets,
    scope::Scope,
};
