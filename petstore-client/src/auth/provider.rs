//! Sources of API keys.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use super::key::ApiKey;
use crate::error::BoxError;

/// A source of API keys that can change during the client's lifetime.
///
/// The client calls it before every request, so it should return a key from memory. After a 401,
/// the client calls it once more, with the rejected key, for all calls that used this key. If it
/// returns another key, the client sends those calls again.
///
/// It may run in another task than the caller's, so it must not rely on task-locals.
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

/// The error of a provider, shared by all callers that waited for it.
pub(super) type SharedFailure = Arc<dyn Error + Send + Sync>;

/// Shares the error of a provider, which may be a cache with a shared one.
pub(super) fn share(error: BoxError) -> SharedFailure {
    match error.downcast::<SharedFailure>() {
        Ok(shared) => *shared,
        Err(error) => Arc::from(error),
    }
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

/// A provider of any type, for programs that choose one at run time. Clones share it.
///
/// ```
/// use petstore_client::{ApiKey, auth::BoxProvider};
///
/// let providers = [BoxProvider::new(ApiKey::new("first")), BoxProvider::new(ApiKey::new("second"))];
/// # assert_eq!(providers.len(), 2);
/// ```
#[derive(Clone)]
pub struct BoxProvider(Arc<dyn DynProvider>);

impl BoxProvider {
    /// Boxes a provider.
    pub fn new(provider: impl ApiKeyProvider) -> Self {
        Self(Arc::new(provider))
    }
}

impl ApiKeyProvider for BoxProvider {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        self.0.dyn_api_key(rejected).await
    }
}

impl fmt::Debug for BoxProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxProvider")
    }
}

type KeyFuture<'a> = Pin<Box<dyn Future<Output = Result<ApiKey, BoxError>> + Send + 'a>>;

/// A provider as an object.
trait DynProvider: Send + Sync {
    fn dyn_api_key<'a>(&'a self, rejected: Option<&'a ApiKey>) -> KeyFuture<'a>;
}

impl<P: ApiKeyProvider> DynProvider for P {
    fn dyn_api_key<'a>(&'a self, rejected: Option<&'a ApiKey>) -> KeyFuture<'a> {
        Box::pin(self.api_key(rejected))
    }
}
