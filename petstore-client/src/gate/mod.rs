//! The quota gate's asynchronous face: acquire a permit, send, show what came.
//!
//! All deciding is `quota`'s. This waits for its verdicts: in order of arrival, without a task of
//! its own, and with a lock that is short and never held across an await. The first in line owns
//! the only timer and hands it on when it leaves.

mod acquire;
mod door;
#[cfg(all(test, shuttle))]
mod model;
mod permit;
mod queue;
mod registry;
mod snapshot;
mod store;
#[cfg(test)]
mod waiting;

pub(crate) use acquire::Wish;
pub(crate) use door::{Gate, Hold};
pub(crate) use permit::Permit;
pub(crate) use queue::Lane;
pub(crate) use registry::Gates;
pub use snapshot::{Blocked, HeldBy, QuotaStatus, RateLimits};
