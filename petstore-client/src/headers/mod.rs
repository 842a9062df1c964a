//! Reads the headers that steer the client. All of them are hostile until parsed.
//!
//! A value that cannot be right counts as absent; where a header comes several times, or as a
//! list, the most restrictive value stands. Nothing a server sends makes these functions panic.
//! What follows from the values is left to `quota`, `retry` and `deprecation`.

mod fields;
mod link;
mod rate;

pub(crate) use fields::{date, digits, epoch, http_date, service_time, values};
pub(crate) use link::targets;
pub use rate::RateLimit;
pub(crate) use rate::{rate_limit, retry_after};
