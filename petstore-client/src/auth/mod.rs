//! API keys, fixed or from a provider.
//!
//! [`ClientBuilder::api_key`](crate::ClientBuilder::api_key) takes a fixed key. For key rotation,
//! implement [`ApiKeyProvider`], or turn a closure into one with [`provider_fn`].
//! [`CachingProvider`] adds a cache to a slow provider.
//!
//! After a 401, the client asks the provider once for all calls that used the rejected key, and
//! sends them again with the new key. A rotation needs no restart, and no call fails.

mod caching;
mod credentials;
mod key;
mod provider;

pub use caching::CachingProvider;
pub(crate) use credentials::{Credential, Credentials};
pub use key::ApiKey;
pub use provider::{ApiKeyProvider, BoxProvider, ProviderFn, provider_fn};
