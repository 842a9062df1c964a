//! Where the API key of each request comes from.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use http::HeaderValue;

use crate::error::{BoxError, Error, Kind};
use crate::secret::ApiKey;

/// What a [`KeyProvider`] returns.
pub type KeyFuture<'a> = Pin<Box<dyn Future<Output = Result<ApiKey, BoxError>> + Send + 'a>>;

/// A source of API keys that may change while the client lives.
///
/// It is asked before every request, so it should answer from memory where it can. After a 401 it
/// is asked once more, with the key that was refused; if it has another one, the request is sent
/// again with that.
///
/// ```
/// use petstore_client::{ApiKey, KeyFuture, KeyProvider};
///
/// struct FromVault { /* … */ }
///
/// impl KeyProvider for FromVault {
///     fn api_key<'a>(&'a self, refused: Option<&'a ApiKey>) -> KeyFuture<'a> {
///         Box::pin(async move {
///             if refused.is_some() { /* fetch a new one */ }
///             Ok(ApiKey::new("fresh"))
///         })
///     }
/// }
///
/// let client = petstore_client::Client::builder("https://petstore.example/v1")
///     .key_provider(FromVault {})
///     .build();
/// # assert!(client.is_ok());
/// ```
pub trait KeyProvider: Send + Sync + 'static {
    /// Returns the key for the next request. `refused` is the key that the service has just
    /// answered with 401.
    ///
    /// # Errors
    ///
    /// Any error ends the call; it is the [`source`](std::error::Error::source) of the call's.
    fn api_key<'a>(&'a self, refused: Option<&'a ApiKey>) -> KeyFuture<'a>;
}

/// A fixed key, or a provider.
#[derive(Clone)]
pub(crate) enum Keys {
    Fixed(HeaderValue),
    Provided(Arc<dyn KeyProvider>),
}

/// What signs one request.
pub(crate) struct Signature {
    pub(crate) authorization: HeaderValue,
    /// The key, where its provider may have another.
    key: Option<ApiKey>,
}

impl Signature {
    /// Returns whether a provider was asked for it.
    pub(crate) fn may_have_changed(&self) -> bool {
        self.key.is_some()
    }
}

impl Keys {
    pub(crate) fn fixed(key: &ApiKey) -> Result<Self, Error> {
        match key.authorization() {
            Ok(header) => Ok(Self::Fixed(header)),
            Err(problem) => Err(Error::config("API key", problem)),
        }
    }

    pub(crate) async fn sign(&self) -> Result<Signature, Error> {
        match self {
            Self::Fixed(header) => Ok(Signature { authorization: header.clone(), key: None }),
            Self::Provided(provider) => signature(provider.api_key(None).await),
        }
    }

    /// Returns another signature in place of a refused one, if there is another.
    pub(crate) async fn sign_again(&self, refused: &Signature) -> Result<Option<Signature>, Error> {
        let (Self::Provided(provider), Some(key)) = (self, &refused.key) else {
            return Ok(None);
        };
        let fresh = signature(provider.api_key(Some(key)).await)?;
        Ok((fresh.key.as_ref() != Some(key)).then_some(fresh))
    }
}

fn signature(key: Result<ApiKey, BoxError>) -> Result<Signature, Error> {
    let key = key.map_err(|source| Error::new(Kind::Key(source)))?;
    match key.authorization() {
        Ok(authorization) => Ok(Signature { authorization, key: Some(key) }),
        Err(problem) => Err(Error::config("API key", problem)),
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Fixed(…)",
            Self::Provided(_) => "Provided(…)",
        })
    }
}
