//! Rate limits: what is known of a key's quotas, and when the next request may be sent.

// All that is known of a key is a pure value, the ledger (`quota`). It lives in a store (`store`). In each
// process, a limiter (`limiter`) keeps the calls that wait, reports to the ledger how its requests ended, and
// is granted new ones. A registry keeps one store for each key and origin.

pub(crate) mod view;

pub(crate) mod quota;

pub(crate) mod limiter_clock;

#[cfg_attr(
    not(any(feature = "file-store", feature = "redis")),
    expect(unreachable_pub, reason = "no store can be shared")
)]
pub(crate) mod store;

mod policy;

mod settings;

pub(crate) mod limiter;

mod registry;

#[cfg(test)]
mod simulator;
#[cfg(test)]
mod tests;

pub(crate) use limiter::{Acquire, Limiter, Permit, Refused, Wait};
#[cfg(feature = "test-util")]
pub(crate) use limiter_clock::TimeSource;
#[cfg(test)]
pub(crate) use policy::Policy;
pub(crate) use registry::ClientLimiters;
pub use settings::Limits;
#[cfg(feature = "file-store")]
pub use store::file::FileStore;
#[cfg(feature = "redis")]
pub use store::redis::RedisStore;
#[cfg(any(feature = "file-store", feature = "redis"))]
pub use store::{SharedStore, StoreError};
pub use view::{
    BlockReason, Blocked, Plan, Priority, Quota, QuotaWindow, RateLimits, Shared, WaitReason,
};
