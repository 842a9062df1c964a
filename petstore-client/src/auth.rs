//! API keys: how one is kept out of sight, and where each request's key comes from.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use tokio::time::{Instant, timeout};
use zeroize::Zeroizing;

use crate::clock;
use crate::error::{BoxError, Error, Failure};

/// How long a call waits for another one's refresh before it asks the provider itself.
const MAX_REFRESH_WAIT: Duration = Duration::from_secs(10);

/// An API key for the service (specification, section 5).
///
/// `Debug` shows `ApiKey(…)` and never the key; there is no `Display`. This value's memory is
/// overwritten when the last copy is dropped. The `Authorization` header built from it is marked
/// sensitive, so that HTTP libraries do not log it; the memory of that header is not overwritten,
/// since the HTTP stack copies it.
///
/// ```
/// use petstore_client::ApiKey;
///
/// let key = ApiKey::new("s3cret");
/// assert_eq!(format!("{key:?}"), "ApiKey(…)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// Wraps a key. It is checked when a client is built with it, or when it is first sent.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self(Zeroizing::new(key.into()))
    }

    /// Returns the `Authorization` value (RFC 6750, section 2.1), or what makes the key unusable.
    pub(crate) fn authorization(&self) -> Result<HeaderValue, String> {
        if self.0.is_empty() {
            return Err("it is empty".to_owned());
        }
        if let Some(position) = self.0.chars().position(|c| !c.is_ascii_graphic()) {
            return Err(format!(
                "its character {} is a space, a line break or outside printable ASCII; \
                 trim what was read with the key",
                position + 1
            ));
        }
        let text = Zeroizing::new(format!("Bearer {}", self.0.as_str()));
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| "it cannot be written into a header".to_owned())?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Self::new(key)
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self::new(key)
    }
}

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

impl<P: ApiKeyProvider> ApiKeyProvider for Arc<P> {
    fn api_key(
        &self,
        rejected: Option<&ApiKey>,
    ) -> impl Future<Output = Result<ApiKey, BoxError>> + Send {
        (**self).api_key(rejected)
    }
}

type KeyFuture<'a> = Pin<Box<dyn Future<Output = Result<ApiKey, BoxError>> + Send + 'a>>;

/// A provider of any type.
trait DynProvider: Send + Sync {
    fn dyn_api_key<'a>(&'a self, rejected: Option<&'a ApiKey>) -> KeyFuture<'a>;
}

impl<P: ApiKeyProvider> DynProvider for P {
    fn dyn_api_key<'a>(&'a self, rejected: Option<&'a ApiKey>) -> KeyFuture<'a> {
        Box::pin(self.api_key(rejected))
    }
}

/// What authorizes one request.
#[derive(Clone)]
pub(crate) struct Credential {
    pub(crate) authorization: HeaderValue,
    /// The key, where its provider may have another.
    key: Option<ApiKey>,
}

impl Credential {
    /// Returns whether a provider was asked for it.
    pub(crate) fn may_rotate(&self) -> bool {
        self.key.is_some()
    }
}

/// Where credentials come from: a fixed key, or a provider.
pub(crate) enum Credentials {
    Fixed(HeaderValue),
    Provided(ProvidedKeys),
}

pub(crate) struct ProvidedKeys {
    provider: Box<dyn DynProvider>,
    /// The rejected key that is being replaced, while it is.
    replacing: Mutex<Option<ApiKey>>,
    /// The last refresh. One call refreshes at a time.
    last_refresh: tokio::sync::Mutex<Option<Refresh>>,
}

struct Refresh {
    rejected: ApiKey,
    ended: Instant,
    /// The new key; `None` where the provider has no other.
    result: Result<Option<Credential>, Arc<dyn StdError + Send + Sync>>,
}

impl Refresh {
    /// Returns whether its result serves a call whose request with `rejected` was sent at `sent`: it
    /// has ended since, or it has a new key that the call had not seen yet.
    fn serves(&self, rejected: &ApiKey, sent: Instant) -> bool {
        let is_new = matches!(self.result, Ok(Some(_)));
        let is_recent = is_new && sent.saturating_duration_since(self.ended) < MAX_REFRESH_WAIT;
        self.rejected == *rejected && (self.ended >= sent || is_recent)
    }
}

impl Credentials {
    pub(crate) fn fixed(key: &ApiKey) -> Result<Self, Error> {
        match key.authorization() {
            Ok(header) => Ok(Self::Fixed(header)),
            Err(problem) => Err(Error::config("API key", problem)),
        }
    }

    pub(crate) fn provided(provider: impl ApiKeyProvider) -> Self {
        Self::Provided(ProvidedKeys {
            provider: Box::new(provider),
            replacing: Mutex::default(),
            last_refresh: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the credential for the next request.
    pub(crate) async fn get(&self) -> Result<Credential, Error> {
        match self {
            Self::Fixed(header) => Ok(Credential { authorization: header.clone(), key: None }),
            Self::Provided(keys) => keys.get().await,
        }
    }

    /// Returns another credential in place of one that was rejected, if there is another. The
    /// rejected request was sent at `sent`: a refresh that has ended since serves it as well.
    pub(crate) async fn replace(
        &self,
        rejected: &Credential,
        sent: Instant,
    ) -> Result<Option<Credential>, Error> {
        match (self, &rejected.key) {
            (Self::Provided(keys), Some(key)) => keys.replace(key, sent).await,
            _ => Ok(None),
        }
    }
}

impl ProvidedKeys {
    async fn get(&self) -> Result<Credential, Error> {
        let key = self.provider.dyn_api_key(None).await;
        let credential = credential(key.map_err(|error| Error::new(Failure::Credentials(error)))?)?;
        let replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match &credential.key {
            // It has just been rejected.
            Some(key) if replacing.as_ref() == Some(key) => {
                Ok(self.replace(key, clock::now()).await?.unwrap_or(credential))
            }
            _ => Ok(credential),
        }
    }

    async fn replace(&self, rejected: &ApiKey, sent: Instant) -> Result<Option<Credential>, Error> {
        // Whoever refreshes may not be run any more, or its provider hangs.
        let Ok(mut last) = timeout(MAX_REFRESH_WAIT, self.last_refresh.lock()).await else {
            let key = self.provider.dyn_api_key(Some(rejected)).await;
            let key = key.map_err(|error| Error::new(Failure::Credentials(error)))?;
            return if key == *rejected { Ok(None) } else { credential(key).map(Some) };
        };
        if last.as_ref().is_none_or(|last| !last.serves(rejected, sent)) {
            *self.replacing.lock().unwrap_or_else(PoisonError::into_inner) = Some(rejected.clone());
            let _replacing = Replacing(&self.replacing);
            let result = match self.provider.dyn_api_key(Some(rejected)).await {
                Ok(key) if key == *rejected => Ok(None),
                Ok(key) => credential(key).map(Some).map_err(|error| Arc::new(error) as _),
                Err(error) => Err(Arc::from(error)),
            };
            *last = Some(Refresh { rejected: rejected.clone(), ended: clock::now(), result });
        }
        match last.as_ref().map(|last| &last.result) {
            Some(Ok(credential)) => Ok(credential.clone()),
            Some(Err(error)) => {
                Err(Error::new(Failure::Credentials(Box::new(SharedError(Arc::clone(error))))))
            }
            None => Ok(None),
        }
    }
}

/// Says that a key is no longer being replaced, also where the call that refreshes is dropped.
struct Replacing<'a>(&'a Mutex<Option<ApiKey>>);

impl Drop for Replacing<'_> {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A provider's error that several calls return.
#[derive(Debug)]
struct SharedError(Arc<dyn StdError + Send + Sync>);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for SharedError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

fn credential(key: ApiKey) -> Result<Credential, Error> {
    match key.authorization() {
        Ok(authorization) => Ok(Credential { authorization, key: Some(key) }),
        Err(problem) => Err(Error::config("API key", problem)),
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Fixed(…)",
            Self::Provided(_) => "Provided(…)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_key_with_a_line_break_without_repeating_it() {
        let problem = ApiKey::new("abc\n").authorization().unwrap_err();
        assert!(problem.contains("character 4"), "{problem}");
        assert!(!problem.contains("abc"), "{problem}");
    }

    #[test]
    fn marks_the_header_sensitive() {
        let header = ApiKey::new("abc").authorization().unwrap();
        assert!(header.is_sensitive());
        assert_eq!(header.as_bytes(), b"Bearer abc");
    }
}
