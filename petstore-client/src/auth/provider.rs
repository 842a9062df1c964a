//! Sources of API keys.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::key::ApiKey;
use crate::clock;
use crate::error::BoxError;

/// A source of API keys that can change during the client's lifetime.
///
/// The client calls it before every request, so it should return a key from memory. After a 401,
/// the client calls it once more, with the rejected key, for all calls that used this key. If it
/// returns another key, the client sends those calls again.
///
/// It runs on the call's task, which does not have the caller's task-locals.
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
    /// Returns the key for the next request. `rejected` is the key that the service just answered
    /// with 401.
    ///
    /// # Errors
    ///
    /// An error ends the call, and becomes the [`source`](std::error::Error::source) of the call's
    /// error.
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
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        (**self).api_key(rejected).await
    }
}

/// Turns an async closure into a provider. Its argument is the rejected key, if any.
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
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        (self.0)(rejected.cloned()).await
    }
}

/// Caches the key of a slow provider, such as a vault.
///
/// When the key expires or the service rejects it, one call asks the provider again, and other
/// calls wait. A program that keeps this provider in an `Arc` can [`invalidate`](Self::invalidate)
/// the key after a rotation.
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
    /// The key, and when it was fetched. Locked while the provider runs.
    cached: Mutex<Option<(ApiKey, Instant)>>,
    is_invalid: AtomicBool,
}

impl<P: ApiKeyProvider> CachingProvider<P> {
    /// Caches each key of `provider` for `ttl`.
    pub fn new(provider: P, ttl: Duration) -> Self {
        Self {
            provider,
            ttl,
            cached: Mutex::default(),
            is_invalid: AtomicBool::new(false),
        }
    }

    /// Drops the cached key. The next request asks the provider.
    pub fn invalidate(&self) {
        self.is_invalid.store(true, Ordering::Release);
    }
}

impl<P: ApiKeyProvider> ApiKeyProvider for CachingProvider<P> {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        let mut cached = self.cached.lock().await;
        if self.is_invalid.swap(false, Ordering::AcqRel) {
            *cached = None;
        }
        if let Some((key, since)) = &*cached
            && clock::now().saturating_duration_since(*since) < self.ttl
            && rejected != Some(key)
        {
            return Ok(key.clone());
        }
        let key = self.provider.api_key(rejected).await?;
        *cached = Some((key.clone(), clock::now()));
        Ok(key)
    }
}

impl<P> fmt::Debug for CachingProvider<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachingProvider")
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
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
