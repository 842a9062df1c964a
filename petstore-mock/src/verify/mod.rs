//! What a test asserts about the requests that came: so many, in this order, and what is said where it
//! was otherwise. Which requests are meant is left to `pattern`.

mod check;
mod expectation;
mod times;

pub(crate) use self::check::{check_order, check_times};
pub use self::{expectation::Expectation, times::Times};
