//! The builder of a client, which checks its settings.

mod build;

use std::fmt;

use http::HeaderValue;

use crate::auth::{ApiKey, ApiKeyProvider, Credentials};
use crate::client::Client;
use crate::error::Error;
use crate::events::{AttemptRequest, Event, Events};
use crate::options::{RequestOptions, option_setters};
use crate::rate_limit::Limits;
#[cfg(feature = "test-util")]
use crate::rate_limit::TimeSource;
use crate::retry::RetryPolicy;
use crate::transport::{BoxTransport, Builtin, Connection, Transport};
use crate::wire::base_url::BaseUrl;

/// Wraps the built-in transport in one of the program.
type Wrapper = Box<dyn FnOnce(Builtin) -> BoxTransport + Send + Sync>;

/// Builds a [`Client`]. [`Client::builder`] creates it.
///
/// ```
/// use std::time::Duration;
/// use petstore_client::Client;
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .user_agent("kennel/2.1")
///     .timeout(Duration::from_secs(20))
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct ClientBuilder {
    base_url: String,
    credentials: Option<Result<Credentials, Error>>,
    connection: Connection,
    transport: Option<BoxTransport>,
    wrapper: Option<Wrapper>,
    user_agent: Option<String>,
    options: RequestOptions,
    retry: RetryPolicy,
    limits: Limits,
    events: Events,
    #[cfg(feature = "test-util")]
    isolated: bool,
    #[cfg(feature = "test-util")]
    test_clock: Option<TimeSource>,
}

impl Client {
    /// Creates a client with default settings.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Config`](crate::ErrorKind::Config) if the base URL or the key is
    /// invalid.
    pub fn new(base_url: impl Into<String>, api_key: impl Into<ApiKey>) -> Result<Self, Error> {
        Self::builder(base_url).api_key(api_key).build()
    }

    /// Starts building a client for a base URL that includes the version segment.
    pub fn builder(base_url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(base_url.into())
    }

    /// Builds a client from the environment: `PETSTORE_BASE_URL` and `PETSTORE_API_KEY`.
    ///
    /// # Errors
    ///
    /// Fails if a variable is missing, is not Unicode, or has an invalid value.
    pub fn from_env() -> Result<Self, Error> {
        ClientBuilder::from_env()?.build()
    }
}

impl ClientBuilder {
    /// Starts building a client from the environment: `PETSTORE_BASE_URL` and `PETSTORE_API_KEY`.
    ///
    /// # Errors
    ///
    /// Fails if a variable is missing or is not Unicode.
    pub fn from_env() -> Result<Self, Error> {
        let base_url = variable("PETSTORE_BASE_URL", "base URL")?;
        let key = variable("PETSTORE_API_KEY", "API key")?;
        Ok(Self::new(base_url).api_key(key))
    }

    fn new(base_url: String) -> Self {
        Self {
            base_url,
            credentials: None,
            connection: Connection::default(),
            transport: None,
            wrapper: None,
            user_agent: None,
            options: RequestOptions::new(),
            retry: RetryPolicy::new(),
            limits: Limits::new(),
            events: Events::default(),
            #[cfg(feature = "test-util")]
            isolated: false,
            #[cfg(feature = "test-util")]
            test_clock: None,
        }
    }

    /// Sets the API key that authorizes every request (specification, section 5).
    pub fn api_key(mut self, key: impl Into<ApiKey>) -> Self {
        self.credentials = Some(Credentials::fixed(&key.into()));
        self
    }

    /// Sets a provider that returns the key for each request, instead of a fixed key.
    pub fn api_key_provider(mut self, provider: impl ApiKeyProvider) -> Self {
        self.credentials = Some(Ok(Credentials::provided(provider)));
        self
    }

    option_setters!();

    fn options_mut(&mut self) -> &mut RequestOptions {
        &mut self.options
    }

    /// Sets when failed attempts are retried.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets how the client uses the quotas of its key.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how the built-in transport connects.
    pub fn connection(mut self, connection: Connection) -> Self {
        self.connection = connection;
        self
    }

    /// Sets the program's name and version in `User-Agent`, before the crate's: `kennel/2.1
    /// petstore-client/0.1` (RFC 9110, section 10.1.5).
    pub fn user_agent(mut self, product: impl Into<String>) -> Self {
        self.user_agent = Some(product.into());
        self
    }

    /// Adds a header to every request that does not set it. The client sets `Authorization`,
    /// `Host`, `Connection` and the headers for the body's length, and [`build`](Self::build) refuses them.
    pub fn header<V: TryInto<HeaderValue>>(mut self, name: impl AsRef<str>, value: V) -> Self {
        self.options = self.options.header(name, value);
        self
    }

    /// Replaces the built-in transport, whose settings [`build`](Self::build) then refuses.
    /// [`Transport`] describes what a transport must do.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(BoxTransport::new(transport));
        self
    }

    /// Wraps the built-in transport, to record, cache, sign or route requests. The settings of the
    /// built-in transport apply. [`Builtin`] has an example.
    pub fn wrap_transport<T: Transport>(
        mut self,
        wrap: impl FnOnce(Builtin) -> T + Send + Sync + 'static,
    ) -> Self {
        self.wrapper = Some(Box::new(|builtin| BoxTransport::new(wrap(builtin))));
        self
    }

    /// Adds a function that receives all events: requests, waits, 429s, retries and deprecations.
    /// It runs on the call's task and should return quickly. Events do not contain the API key, but
    /// may contain other secrets of the requests. [`EventKind`](crate::events::EventKind) has an example.
    pub fn on_event(mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.events.add(hook);
        self
    }

    /// Adds a function that may set headers of each request, for example to propagate a trace. It runs
    /// before each attempt, in the attempt's span, after the functions that were added before it. It
    /// should return quickly, and cannot fail the call. [`AttemptRequest`] has an example.
    ///
    /// It may run in another task than the caller's, so it must not rely on task-locals. To pass on a
    /// header of the program's own request, set it on the call: [`Call::header`](crate::operations::Call::header).
    pub fn on_request(
        mut self,
        hook: impl Fn(&mut AttemptRequest<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.events.add_request_hook(hook);
        self
    }

    /// Shares no rate limits with other clients of the process. For tests whose servers reuse
    /// ports.
    #[cfg(feature = "test-util")]
    pub fn isolated_limits(mut self) -> Self {
        self.isolated = true;
        self
    }

    /// Sets the service's clock, for tests that move it. Waiting calls notice a change within 25
    /// ms. This implies [`isolated_limits`](Self::isolated_limits), and does not work with shared
    /// limits.
    #[cfg(feature = "test-util")]
    pub fn service_clock(
        mut self,
        now: impl Fn() -> std::time::SystemTime + Send + Sync + 'static,
    ) -> Self {
        self.isolated = true;
        self.test_clock = Some(TimeSource::of_service(now));
        self
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "only `from_env` reads the environment, and its caller asked for that"
)]
fn variable(name: &str, setting: &'static str) -> Result<String, Error> {
    std::env::var(name).map_err(|_| {
        Error::config(
            setting,
            format!("`{name}` is not set, or not valid Unicode"),
        )
    })
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            // An unchecked base URL may contain a password.
            .field("base_url", &BaseUrl::parse(&self.base_url, true).ok())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
