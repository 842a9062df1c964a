//! What is known of a key's rate limits: [`Client::rate_limits`](crate::Client::rate_limits).
//!
//! The client keeps within the limits that the service describes, so that it is not refused: see
//! the crate's documentation.

mod snapshot;

pub(crate) mod clock;
mod outstanding;
mod plan;
mod window;

pub(crate) mod ledger;

pub(crate) mod decision;

pub(crate) mod file;

pub(crate) mod limiter;

mod registry;

#[cfg(all(test, shuttle))]
mod model;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod waiting;

pub(crate) use decision::Policy;
pub(crate) use limiter::{Acquire, Limiter, Permit, Wait};
#[cfg(test)]
pub(crate) use outstanding::Reservation;
pub(crate) use registry::ClientLimiters;
pub use snapshot::{
    BlockReason, Blocked, Plan, Priority, Quota, QuotaWindow, RateLimits, WaitReason,
};
#[cfg(test)]
pub(crate) use window::Figure;
