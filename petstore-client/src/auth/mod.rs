//! API keys: how one is kept out of sight, and where each request's key comes from.
//!
//! A key that never changes is given to [`ClientBuilder::api_key`](crate::ClientBuilder::api_key). One
//! that is rotated comes from an [`ApiKeyProvider`]: implement it, or make one of a closure with
//! [`provider_fn`]. Where it is slow, [`CachingProvider`] asks it now and then.
//!
//! After a 401 the provider is asked once for all calls that were rejected with the same key, and
//! those are sent again with the new one. So a rotation needs no restart, and loses no call.

mod credentials;
mod key;
mod provider;

pub(crate) use credentials::{Credential, Credentials};
pub use key::ApiKey;
pub use provider::{ApiKeyProvider, CachingProvider, ProviderFn, provider_fn};
