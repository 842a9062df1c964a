//! API keys, fixed or from a provider.
//!
//! [`ClientBuilder::api_key`](crate::ClientBuilder::api_key) takes a fixed key. A key that is rotated
//! comes from an [`ApiKeyProvider`]: implement it, or make one of a closure with [`provider_fn`]. Where
//! it is slow, [`CachingProvider`] keeps its key for a time.
//!
//! After a 401 the provider is asked once for all calls that were rejected with the same key, and
//! those are sent again with the new one. So a rotation needs no restart, and no call fails.

mod credentials;
mod key;
mod provider;

pub(crate) use credentials::{Credential, Credentials};
pub use key::ApiKey;
pub use provider::{ApiKeyProvider, CachingProvider, ProviderFn, provider_fn};
