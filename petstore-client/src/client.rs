//! The client: a handle that is cheap to clone, and what its clones share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use http::HeaderMap;

use crate::auth::Credentials;
use crate::error::Error;
use crate::events::Events;
use crate::http::base_url::BaseUrl;
use crate::options::RequestOptions;
use crate::rate_limit::{ClientLimiters, Limiter, Policy, RateLimits};
use crate::request::Request;
use crate::retry::Retries;
use crate::transport::Network;

/// A client for the Pet Store service.
///
/// Clones share connections, rate limits and the retry budget: build one and clone it. All futures
/// are `Send` and may be dropped at any point.
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

/// What all clones of a client share.
pub(crate) struct Core {
    pub(crate) base: BaseUrl,
    pub(crate) network: Network,
    pub(crate) credentials: Credentials,
    pub(crate) limiters: ClientLimiters,
    pub(crate) policy: Policy,
    /// The headers of every request.
    pub(crate) headers: HeaderMap,
    pub(crate) retries: Retries,
    pub(crate) events: Events,
    /// The number of changes of the store of shared limits that were reported.
    pub(crate) store_changes: AtomicU64,
}

impl Client {
    /// Returns a client whose calls have other limits, and which shares everything else with this one.
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

    /// Returns what is known of the key's rate limits, without a request.
    ///
    /// All clients of a process with the same key and origin share one limiter. With a key
    /// provider it is that of the key that was used last.
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
        limiter.map(|limiter| limiter.snapshot(&self.core.policy)).unwrap_or_default()
    }

    /// Returns the limiter of the key that was used last.
    fn limiter(&self) -> Option<Arc<Limiter>> {
        match &self.core.credentials {
            // Other processes may have shared its limits before the first call.
            Credentials::Fixed(authorization) => Some(self.core.limiters.get(authorization)),
            Credentials::Provided(_) => self.core.limiters.last(),
        }
    }

    /// Exchanges rate limits with the processes that share them, and returns what is known then. Sends
    /// no request to the service. A short program calls it before it ends; the exchange happens by itself
    /// within 1.5 s. Without a store it is [`rate_limits`](Self::rate_limits).
    pub async fn synchronize_rate_limits(&self) -> RateLimits {
        if let Some(limiter) = self.limiter() {
            limiter.synchronize().await;
        }
        self.rate_limits()
    }

    /// Forgets what is known of the key's rate limits, here and in the store that processes share. A
    /// key that is blocked may be used again: the next call asks. Another process that runs keeps what
    /// it knows, and writes it to the store again.
    ///
    /// # Errors
    ///
    /// Where the store cannot be reached.
    pub async fn forget_rate_limits(&self) -> Result<(), Error> {
        let Some(limiter) = self.limiter() else { return Ok(()) };
        let forgotten = limiter.forget().await;
        forgotten.map_err(|error| Error::config("store of shared limits", error))
    }

    /// Returns a request as it would be sent, without its credential.
    pub(crate) fn build(&self, request: &Request) -> Result<http::Request<Bytes>, Error> {
        request.to_http(request.with_defaults(&self.core.headers))
    }

    /// Returns the base address.
    #[must_use]
    pub fn base_url(&self) -> &url::Url {
        self.core.base.as_url()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base_url = self.base_url().as_str();
        f.debug_struct("Client").field("base_url", &base_url).finish_non_exhaustive()
    }
}
