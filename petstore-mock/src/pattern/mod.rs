//! Which exchanges are meant, and how far others are from that. How many there are to be, and in which
//! order, is left to `verify`.

mod condition;
mod json;
mod value;

pub use self::value::Pattern;
