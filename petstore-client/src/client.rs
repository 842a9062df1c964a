//! The client: a handle that is cheap to clone, and what it offers.

use std::sync::Arc;

use crate::call::Core;
use crate::error::Error;
use crate::options::RequestOptions;
use crate::rate_limit::RateLimits;

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
#[derive(Debug, Clone)]
pub struct Client {
    core: Arc<Core>,
    options: RequestOptions,
}

impl Client {
    pub(crate) fn of(core: Core) -> Self {
        Self { core: Arc::new(core), options: RequestOptions::new() }
    }

    /// Returns what a call of this client is made of.
    pub(crate) fn parts(&self) -> (Arc<Core>, RequestOptions) {
        (Arc::clone(&self.core), self.options)
    }

    /// Returns a client whose calls have other limits, and which shares all else with this one.
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
        self.core.rate_limits()
    }

    /// Tells the other processes that share the limits what this one has learned, reads what they have,
    /// and returns what is known then. Sends no request to the service. Call it before a short program
    /// ends; others tell within 1.5 s. Without a store it is [`rate_limits`](Self::rate_limits).
    pub async fn synchronize_rate_limits(&self) -> RateLimits {
        if let Some(limiter) = self.core.limiter() {
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
    /// Where the store is out of reach.
    pub async fn forget_rate_limits(&self) -> Result<(), Error> {
        match self.core.limiter() {
            Some(limiter) => {
                let forgotten = limiter.forget().await;
                forgotten
                    .map_err(|error| Error::config("store of shared limits", error.to_string()))
            }
            None => Ok(()),
        }
    }

    /// Returns the base address.
    #[must_use]
    pub fn base_url(&self) -> &url::Url {
        self.core.base.as_url()
    }
}

const fn assert_shareable<T: Clone + Send + Sync + 'static>() {}
const _: () = assert_shareable::<Client>();
