//! The client: a cheap handle, and the state that its clones share.

pub(crate) mod builder;
pub(crate) mod closing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::timeout;

use self::closing::Closing;
use crate::auth::{ApiKey, Credentials};
use crate::error::Error;
use crate::events::Events;
use crate::options::RequestOptions;
use crate::rate_limit::{ClientLimiters, Limiter};
use crate::request::Request;
use crate::retry::Retries;
use crate::transport::Network;
use crate::wire::base_url::BaseUrl;

/// How long closing a client takes at most.
const CLOSING_TIME: Duration = Duration::from_secs(1);

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
    pub(crate) closing: Closing,
}

impl Client {
    /// Returns a client with other limits for its calls. It shares everything else with this one.
    ///
    /// ```
    /// # use petstore_client::{Client, RequestOptions, limits::Priority};
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
    /// key, and [`Limits`](crate::limits::Limits) apply to each key by itself.
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
            credentials: Credentials::fixed(&key.into())?,
            limiters: core.limiters.of_another_key(),
            headers: core.headers.clone(),
            retries: Arc::clone(&core.retries),
            events: core.events.of_another_key(),
            closing: Closing::default(),
        };
        Ok(Self {
            core: Arc::new(core),
            options: self.options.clone(),
        })
    }

    /// Returns the limiter of the key that was used last.
    pub(crate) fn limiter(&self) -> Option<Arc<Limiter>> {
        match &self.core.credentials {
            // Other processes may have shared limits before the first call.
            Credentials::Fixed(authorization) => Some(self.core.limiters.get(authorization)),
            Credentials::Provided(_) => self.core.limiters.last(),
        }
    }

    /// Closes this client, its clones, and those that [`with_options`](Self::with_options) made. Calls
    /// that wait, and later ones, fail with [`ErrorKind::Closed`](crate::ErrorKind::Closed). Requests in
    /// flight finish, and a store of shared limits learns how they ended. This takes at most a second.
    /// Other clients with the key go on.
    ///
    /// A client that is only dropped loses nothing but that: the store knows its last requests as lost,
    /// until a later response shows whether the service counted them.
    pub async fn close(&self) {
        let closing = &self.core.closing;
        closing.begin();
        let finish = async {
            closing.drained().await;
            if let Some(limiter) = self.limiter() {
                limiter.synchronize().await;
            }
        };
        // What has not ended by then is lost.
        _ = timeout(CLOSING_TIME, finish).await;
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
