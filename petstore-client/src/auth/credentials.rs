//! The credential of a request, and one refresh for all calls whose key was rejected.

use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use tokio::time::{Instant, timeout};

use super::key::ApiKey;
use super::provider::{ApiKeyProvider, DynProvider};
use crate::clock;
use crate::error::{Error, Failure};

/// How long a call waits for another one's refresh before it asks the provider itself.
const MAX_REFRESH_WAIT: Duration = Duration::from_secs(10);

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
