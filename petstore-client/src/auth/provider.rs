//! Where each request's key comes from.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::key::ApiKey;
use crate::clock;
use crate::error::BoxError;

/// A source of API keys that may change while the client lives.
///
/// It is asked before every request, so it should answer from memory where it can. After a 401 it
/// is asked once more, with the key that was rejected, however many calls were rejected with that
/// key; if it has another one, they are sent again with that.
///
/// It runs on the call's task, where the caller's task-locals cannot be seen.
///
/// ```
/// use petstore_client::{ApiKey, BoxError, auth::ApiKeyProvider};
///
/// struct Vault { /* … */ }
///
/// impl ApiKeyProvider for Vault {
///     async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
///         if rejected.is_some() { /* fetch a new one */ }
///         Ok(ApiKey::new("fresh"))
///     }
/// }
///
/// let client = petstore_client::Client::builder("https://petstore.example/v1")
///     .api_key_provider(Vault {})
///     .build();
/// # assert!(client.is_ok());
/// ```
pub trait ApiKeyProvider: Send + Sync + 'static {
    /// Returns the key for the next request. `rejected` is the key that the service has just
    /// answered with 401.
    ///
    /// # Errors
    ///
    /// Any error ends the call; it is the [`source`](std::error::Error::source) of the call's.
    fn api_key(
        &self,
        rejected: Option<&ApiKey>,
    ) -> impl Future<Output = Result<ApiKey, BoxError>> + Send;
}

impl ApiKeyProvider for ApiKey {
    async fn api_key(&self, _: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        Ok(self.clone())
    }
}

impl<P: ApiKeyProvider> ApiKeyProvider for Arc<P> {
    fn api_key(
        &self,
        rejected: Option<&ApiKey>,
    ) -> impl Future<Output = Result<ApiKey, BoxError>> + Send {
        (**self).api_key(rejected)
    }
}

/// Makes a provider of an async closure, which gets the key that was rejected, if one was.
///
/// ```
/// use petstore_client::{Client, auth::provider_fn};
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key_provider(provider_fn(|_rejected| async {
///         Ok(std::fs::read_to_string("/run/secrets/petstore")?.trim().into())
///     }))
///     .build();
/// # assert!(client.is_ok());
/// ```
pub fn provider_fn<F, Fut>(provide: F) -> ProviderFn<F>
where
    F: Fn(Option<ApiKey>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ApiKey, BoxError>> + Send,
{
    ProviderFn(provide)
}

/// An async closure as a provider, from [`provider_fn`].
#[derive(Debug, Clone)]
pub struct ProviderFn<F>(F);

impl<F, Fut> ApiKeyProvider for ProviderFn<F>
where
    F: Fn(Option<ApiKey>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ApiKey, BoxError>> + Send,
{
    fn api_key(
        &self,
        rejected: Option<&ApiKey>,
    ) -> impl Future<Output = Result<ApiKey, BoxError>> + Send {
        (self.0)(rejected.cloned())
    }
}

/// Keeps the key of a provider that is slow to ask, such as a vault.
///
/// The provider is asked again when the key has been kept for its time, or when the service rejects
/// it: by one call, while the others wait. Keep the provider in an `Arc` to
/// [`invalidate`](Self::invalidate) the key where the program hears of a rotation.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use petstore_client::{Client, auth::{CachingProvider, provider_fn}};
///
/// let vault = provider_fn(|_rejected| async { Ok("fetched".into()) });
/// let keys = Arc::new(CachingProvider::new(vault, Duration::from_secs(300)));
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key_provider(Arc::clone(&keys))
///     .build()?;
/// keys.invalidate();
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
pub struct CachingProvider<P> {
    provider: P,
    ttl: Duration,
    /// The key, and since when it has been kept.
    cached: Mutex<Option<(ApiKey, Instant)>>,
    /// Held by the call that asks the provider.
    asking: tokio::sync::Mutex<()>,
}

impl<P: ApiKeyProvider> CachingProvider<P> {
    /// Keeps each key of `provider` for `ttl`.
    pub fn new(provider: P, ttl: Duration) -> Self {
        Self { provider, ttl, cached: Mutex::default(), asking: tokio::sync::Mutex::default() }
    }

    /// Forgets the key: the next request asks the provider.
    pub fn invalidate(&self) {
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn cached(&self, rejected: Option<&ApiKey>) -> Option<ApiKey> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let (key, since) = cached.as_ref()?;
        let is_fresh = clock::now().saturating_duration_since(*since) < self.ttl;
        (is_fresh && rejected != Some(key)).then(|| key.clone())
    }
}

impl<P: ApiKeyProvider> ApiKeyProvider for CachingProvider<P> {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        if let Some(key) = self.cached(rejected) {
            return Ok(key);
        }
        let _asking = self.asking.lock().await;
        if let Some(key) = self.cached(rejected) {
            return Ok(key);
        }
        let key = self.provider.api_key(rejected).await?;
        let kept = Some((key.clone(), clock::now()));
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        Ok(key)
    }
}

impl<P> fmt::Debug for CachingProvider<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachingProvider").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

pub(super) type KeyFuture<'a> = Pin<Box<dyn Future<Output = Result<ApiKey, BoxError>> + Send + 'a>>;

/// A provider of any type.
pub(super) trait DynProvider: Send + Sync {
    fn dyn_api_key<'a>(&'a self, rejected: Option<&'a ApiKey>) -> KeyFuture<'a>;
}

impl<P: ApiKeyProvider> DynProvider for P {
    fn dyn_api_key<'a>(&'a self, rejected: Option<&'a ApiKey>) -> KeyFuture<'a> {
        Box::pin(self.api_key(rejected))
    }
}
