//! Rate limits: what is known of a key's quotas, and when the next request may be sent.
//!
//! The client keeps within the quotas that the service describes, so that its requests are not
//! refused. Calls wait in order of arrival, within two [priorities](Priority).
//! [`Client::rate_limits`](crate::Client::rate_limits) returns what is known, and why calls wait.
//! The [guide](crate::guide::rate_limits) explains the settings.

#![cfg_attr(
    not(feature = "shared-limits"),
    allow(
        clippy::default_constructed_unit_structs,
        clippy::trivially_copy_pass_by_ref,
        clippy::redundant_closure_for_method_calls,
        clippy::needless_borrows_for_generic_args,
        reason = "the types of `unshared` stand in for larger ones"
    )
)]

// A pure ledger records each response, a pure decision says whether a request may be sent, a queue
// holds the waiting calls, and a registry keeps one limiter for each key and origin. Read the files
// of `quota` in the order that its `mod.rs` gives, then `queue`, `limiter` and `limiter::acquire`.

pub(crate) mod view;

#[cfg_attr(
    not(feature = "shared-limits"),
    allow(dead_code, reason = "without a store, parts of it have no use")
)]
pub(crate) mod quota;

pub(crate) mod time;

pub(crate) mod limiter;
mod logged;
mod queue;
#[cfg(feature = "shared-limits")]
pub(crate) mod shared;
#[cfg(not(feature = "shared-limits"))]
#[path = "unshared.rs"]
pub(crate) mod shared;

mod registry;

#[cfg(test)]
mod tests;

pub(crate) use limiter::{Acquire, Limiter, Permit, Wait};
pub(crate) use quota::policy::{MaxInFlight, Policy};
pub(crate) use registry::ClientLimiters;
#[cfg(feature = "shared-limits")]
pub use shared::slot::MemberId;
pub(crate) use shared::store::SharedStore;
#[cfg(feature = "shared-limits")]
pub use shared::store::{Change, LimitStore, RecordKey, StoreError, StoreTime};
#[cfg(feature = "shared-limits")]
pub use shared::stores::boxed::BoxStore;
#[cfg(feature = "file-store")]
pub use shared::stores::file::FileStore;
#[cfg(feature = "redis")]
pub use shared::stores::redis::RedisStore;
#[cfg(feature = "test-util")]
pub(crate) use time::TimeSource;
pub use view::{
    BlockReason, Blocked, Plan, Priority, Quota, QuotaWindow, RateLimits, SharedStatus, WaitReason,
};
