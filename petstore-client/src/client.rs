//! The client: a handle that is cheap to clone, and what it offers.

use std::sync::Arc;

use http::Method;

use crate::api::{Pets, RawRequest, Store};
use crate::base_url::BaseUrl;
use crate::gate::RateLimits;
use crate::pipeline::Pipeline;

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
    pipeline: Arc<Pipeline>,
    base: Arc<BaseUrl>,
}

impl Client {
    pub(crate) fn new(pipeline: Pipeline, base: BaseUrl) -> Self {
        Self { pipeline: Arc::new(pipeline), base: Arc::new(base) }
    }

    /// Returns the operations on pets.
    #[must_use]
    pub fn pets(&self) -> Pets<'_> {
        Pets::new(&self.pipeline, &self.base)
    }

    /// Returns the operations on the store.
    #[must_use]
    pub fn store(&self) -> Store<'_> {
        Store::new(&self.pipeline, &self.base)
    }

    /// Prepares a request of one's own. The path is relative to the base URL; it may hold a query.
    pub fn request(&self, method: Method, path: &str) -> RawRequest<'_> {
        RawRequest::new(&self.pipeline, &self.base, method, path)
    }

    /// Returns what is known of the key's rate limits, without asking the service.
    ///
    /// All clients of a process with the same key and origin share one account. With a key
    /// provider it is that of the key that was used last.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) {
    /// let limits = client.rate_limit();
    /// for quota in &limits.quotas {
    ///     println!("{}: {} of {} left", quota.quota, quota.remaining, quota.limit);
    /// }
    /// if let Some(blocked) = limits.blocked {
    ///     println!("{} calls wait {:?} for {}", limits.waiting, blocked.wait, blocked.quota);
    /// } else if let Some(reason) = limits.held_by {
    ///     println!("{} calls wait for {reason}", limits.waiting);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn rate_limit(&self) -> RateLimits {
        self.pipeline.rate_limit()
    }

    /// Returns the base address.
    #[must_use]
    pub fn base_url(&self) -> &url::Url {
        self.base.as_url()
    }
}

const fn assert_shareable<T: Clone + Send + Sync + 'static>() {}
const _: () = assert_shareable::<Client>();
