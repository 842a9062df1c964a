//! The client: a cheap handle, and the state that its clones share.

pub(crate) mod builder;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

use crate::auth::{ApiKey, Credentials};
use crate::error::Error;
use crate::events::Events;
use crate::http::base_url::BaseUrl;
use crate::options::RequestOptions;
use crate::rate_limit::{ClientLimiters, Limiter, RateLimits};
use crate::request::Request;
use crate::retry::Retries;
use crate::transport::Network;

/// A client for the Pet Store service.
///
/// Clones share connections, rate limits and the retry budget, so build one client and clone it.
/// All futures are `Send` and can be dropped at any point.
///
/// Several runtimes can use one client, for example in a `static`. A connection belongs to the runtime
/// that opened it: if that runtime ends during a request of another one, the request is interrupted.
///
/// ```
/// use petstore_client::Client;
///
/// let client = Client::builder("https://petstore.example/v1").api_key("s3cret").build()?;
/// assert_eq!(client.base_url().as_str(), "https://petstore.example/v1");
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) core: Arc<Core>,
    pub(crate) options: RequestOptions,
}

/// The state that all clones of a client share.
pub(crate) struct Core {
    pub(crate) base: BaseUrl,
    pub(crate) network: Arc<Network>,
    pub(crate) credentials: Credentials,
    pub(crate) limiters: ClientLimiters,
    /// The headers of every request.
    pub(crate) headers: HeaderMap,
    pub(crate) retries: Arc<Retries>,
    pub(crate) events: Events,
}

impl Client {
    /// Returns a client with other limits for its calls. It shares everything else with this one.
    ///
    /// ```
    /// # use petstore_client::{Client, RequestOptions, rate_limit::Priority};
    /// # fn show(client: &Client) {
    /// let background = client.with_options(&RequestOptions::new().priority(Priority::Low));
    /// # }
    /// ```
    #[must_use]
    pub fn with_options(&self, options: &RequestOptions) -> Self {
        let mut client = self.clone();
        client.options.merge(options);
        client
    }

    /// Returns a client with another key, for programs that send for many customers. It shares the
    /// connections, the settings and the retry budget with this one. Its rate limits are those of its
    /// key, and `plan`, `quota_share` and `max_in_flight` apply to each key by itself.
    ///
    /// # Errors
    ///
    /// Fails if the key is empty, or contains a character that a header cannot contain.
    ///
    /// ```
    /// # use petstore_client::{Client, Error};
    /// # async fn show(client: Client) -> Result<(), Error> {
    /// let customer = client.with_api_key("key-of-the-customer")?;
    /// let pets = customer.pets().list().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_api_key(&self, key: impl Into<ApiKey>) -> Result<Self, Error> {
        let core = &self.core;
        let core = Core {
            base: core.base.clone(),
            network: Arc::clone(&core.network),
            credentials: Credentials::Fixed(key.into().authorization()?),
            limiters: core.limiters.of_another_key(),
            headers: core.headers.clone(),
            retries: Arc::clone(&core.retries),
            events: core.events.of_another_key(),
        };
        Ok(Self {
            core: Arc::new(core),
            options: self.options.clone(),
        })
    }

    /// Returns the known rate limits of the key, without sending a request.
    ///
    /// All clients of a process with the same key and origin share one limiter. With a key
    /// provider, this returns the limits of the key that was used last.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) {
    /// let limits = client.rate_limits();
    /// for window in &limits.windows {
    ///     println!("{}: {} of {} left", window.quota, window.remaining, window.limit);
    /// }
    /// if let Some(blocked) = limits.blocked {
    ///     println!("{} calls wait: {blocked}", limits.waiting);
    /// } else if let Some(reason) = limits.wait_reason {
    ///     println!("{} calls wait for {reason}", limits.waiting);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn rate_limits(&self) -> RateLimits {
        let limiter = self.limiter();
        limiter.map(|limiter| limiter.view()).unwrap_or_default()
    }

    /// Returns the limiter of the key that was used last.
    fn limiter(&self) -> Option<Arc<Limiter>> {
        match &self.core.credentials {
            // Other processes may have shared limits before the first call.
            Credentials::Fixed(authorization) => Some(self.core.limiters.get(authorization)),
            Credentials::Provided(_) => self.core.limiters.last(),
        }
    }

    /// Exchanges rate limits with the processes that share them, and returns the result. Sends no
    /// request to the service. A client with requests in flight does so at least once a second. A
    /// short-lived program calls this before it exits, so that the others need not wait for it.
    /// Without a store, it equals [`rate_limits`](Self::rate_limits).
    pub async fn synchronize_rate_limits(&self) -> RateLimits {
        if let Some(limiter) = self.limiter() {
            limiter.synchronize().await;
        }
        self.rate_limits()
    }

    /// Forgets the key's rate limits, for this process and all others that share them. A blocked key
    /// can be used again: the next call sends a request.
    ///
    /// # Errors
    ///
    /// Fails if the store is unreachable.
    pub async fn forget_rate_limits(&self) -> Result<(), Error> {
        let Some(limiter) = self.limiter() else {
            return Ok(());
        };
        let forgotten = limiter.forget().await;
        forgotten.map_err(|error| Error::config("store of shared limits", error))
    }

    /// Adds the headers of the options to a request.
    pub(crate) fn prepare(&self, mut request: Request) -> Result<Request, Error> {
        match self.options.add_headers(&mut request.headers) {
            Ok(()) => Ok(request),
            Err(error) => Err(error.with_operation(request.operation)),
        }
    }

    /// Returns the request that would be sent, without its credential.
    pub(crate) fn build(&self, request: Request) -> Result<http::Request<Bytes>, Error> {
        let request = self.prepare(request)?;
        request.to_http(request.with_defaults(&self.core.headers))
    }

    /// Returns the base URL.
    #[must_use]
    pub fn base_url(&self) -> &url::Url {
        self.core.base.as_url()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base_url = self.base_url().as_str();
        f.debug_struct("Client")
            .field("base_url", &base_url)
            .finish_non_exhaustive()
    }
}
