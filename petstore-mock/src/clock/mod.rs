//! The mock's own time: where it comes from, how a test moves it, and how to wait for it.
//!
//! Everything that depends on time (quotas, bans, `Date`, delays, the removal of an operation) is told
//! `now` by its caller; this is the one place that reads it. Inside the crate, an instant is the
//! [`Duration`](std::time::Duration) since the Unix epoch, because that is what the service's headers
//! speak.

mod face;
mod source;
mod value;

pub(crate) use self::face::END;
pub use self::value::Clock;
pub(crate) use self::value::{Watch, instant, time};
