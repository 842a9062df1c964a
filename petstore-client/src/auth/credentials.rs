//! The credential of a request, and one refresh for all calls whose key was rejected.

use std::sync::PoisonError;
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::key::ApiKey;
use super::provider::{ApiKeyProvider, BoxProvider, share};
use crate::clock;
use crate::error::{BoxError, Error, ErrorKind};

/// Maximum wait for another call's refresh.
const MAX_REFRESH_WAIT: Duration = Duration::from_secs(10);

/// The credential of one request.
#[derive(Clone)]
pub(crate) struct Credential {
    pub(crate) authorization: HeaderValue,
    /// The key, if it comes from a provider.
    key: Option<ApiKey>,
}

impl Credential {
    /// Checks a key from a provider.
    fn provided(key: ApiKey) -> Result<Self, Error> {
        let invalid = |problem| {
            let message = format!("the provider's API key cannot be used: {problem}");
            Error::new(ErrorKind::Credentials, message)
        };
        Ok(Self {
            authorization: key.authorization().map_err(invalid)?,
            key: Some(key),
        })
    }

    /// Returns whether the key comes from a provider.
    pub(crate) fn may_rotate(&self) -> bool {
        self.key.is_some()
    }
}

/// The source of credentials.
pub(crate) enum Credentials {
    Fixed(HeaderValue),
    Provided(ProvidedKeys),
}

pub(crate) struct ProvidedKeys {
    provider: BoxProvider,
    /// The last refresh. Locked during a refresh.
    last_refresh: Mutex<Option<Refresh>>,
    /// The key that is being replaced or, between refreshes, the one that was replaced last.
    rejected: std::sync::Mutex<Option<ApiKey>>,
}

struct Refresh {
    rejected: ApiKey,
    ended: Instant,
    /// The new credential; `None` if the provider has no other key.
    result: Result<Option<Credential>, Error>,
}

impl Refresh {
    /// Returns whether a call can use this result. Its request was sent at `sent`, with the key
    /// `rejected`. It can if the refresh ended after `sent`. It also can if the refresh ended
    /// shortly before `sent` and brought a new key, which the call did not have yet.
    fn serves(&self, rejected: &ApiKey, sent: Instant) -> bool {
        let is_new = matches!(self.result, Ok(Some(_)));
        let is_recent = is_new && sent.saturating_duration_since(self.ended) < MAX_REFRESH_WAIT;
        self.rejected == *rejected && (self.ended >= sent || is_recent)
    }
}

impl Credentials {
    pub(crate) fn fixed(key: &ApiKey) -> Result<Self, Error> {
        let invalid = |problem| Error::config("API key", problem);
        key.authorization().map_err(invalid).map(Self::Fixed)
    }

    pub(crate) fn provided(provider: impl ApiKeyProvider) -> Self {
        Self::Provided(ProvidedKeys {
            provider: BoxProvider::new(provider),
            last_refresh: Mutex::default(),
            rejected: std::sync::Mutex::default(),
        })
    }

    /// Returns the credential for the next request.
    pub(crate) async fn get(&self) -> Result<Credential, Error> {
        match self {
            Self::Fixed(header) => Ok(Credential {
                authorization: header.clone(),
                key: None,
            }),
            Self::Provided(keys) => keys.get().await,
        }
    }

    /// Returns a replacement for a rejected credential, if there is one. `sent` is when the
    /// rejected request was sent.
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
        let mut key = self.provider.api_key(None).await.map_err(failed)?;
        if self.last_refresh.try_lock().is_err() && self.is_rejected(&key) {
            // Another call is replacing the key. The wait for it is limited.
            let _ = timeout(MAX_REFRESH_WAIT, self.last_refresh.lock()).await;
            key = self.provider.api_key(None).await.map_err(failed)?;
        }
        Credential::provided(key)
    }

    fn is_rejected(&self, key: &ApiKey) -> bool {
        self.rejected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            == Some(key)
    }

    async fn replace(&self, rejected: &ApiKey, sent: Instant) -> Result<Option<Credential>, Error> {
        // The refreshing call may no longer be polled, or its provider may hang.
        let Ok(mut last) = timeout(MAX_REFRESH_WAIT, self.last_refresh.lock()).await else {
            return self.ask(rejected).await;
        };
        if let Some(last) = &*last
            && last.serves(rejected, sent)
        {
            return last.result.clone();
        }
        *self.rejected.lock().unwrap_or_else(PoisonError::into_inner) = Some(rejected.clone());
        let result = self.ask(rejected).await;
        let (rejected, ended) = (rejected.clone(), clock::now());
        *last = Some(Refresh {
            rejected,
            ended,
            result: result.clone(),
        });
        result
    }

    async fn ask(&self, rejected: &ApiKey) -> Result<Option<Credential>, Error> {
        let key = self
            .provider
            .api_key(Some(rejected))
            .await
            .map_err(failed)?;
        if key == *rejected {
            return Ok(None);
        }
        Credential::provided(key).map(Some)
    }
}

fn failed(source: BoxError) -> Error {
    let error = Error::new(ErrorKind::Credentials, "the provider returned no API key");
    error.with_shared_source(share(source))
}
