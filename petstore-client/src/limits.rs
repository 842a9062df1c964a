//! Rate limits: how a client uses the quotas of its key, and what is known of them.
//!
//! The client keeps within the quotas that the service describes, so that its requests are not
//! refused. Calls wait in order of arrival, within two [priorities](Priority).
//! [`Client::limits`](crate::Client::limits) returns what is known, and why calls wait.
//! [`Limits`] are the settings; the [guide](crate::guide::rate_limits) explains them.

#[cfg(feature = "file-store")]
pub use crate::rate_limit::FileStore;
#[cfg(feature = "redis")]
pub use crate::rate_limit::RedisStore;
pub use crate::rate_limit::{
    BlockReason, Blocked, Limits, Plan, Priority, Quota, QuotaWindow, RateLimits, Shared,
    WaitReason,
};
#[cfg(any(feature = "file-store", feature = "redis"))]
pub use crate::rate_limit::{SharedStore, StoreError};
