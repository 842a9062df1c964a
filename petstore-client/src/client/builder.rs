//! The builder of a client, which checks its settings.

mod build;

use std::fmt;
use std::time::Duration;

use crate::auth::{ApiKey, ApiKeyProvider, Credentials};
use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::Error;
use crate::events::{AttemptRequest, Event, Events};
use crate::http::base_url::BaseUrl;
use crate::options::{RequestOptions, option_setters};
#[cfg(any(feature = "file-store", feature = "redis"))]
use crate::rate_limit::LimitsStore;
#[cfg(feature = "test-util")]
use crate::rate_limit::TimeSource;
use crate::rate_limit::{Plan, Policy, SharedStore};
use crate::retry::{Classifier, FailedAttempt, RetryAdvice, RetryBudget};
use crate::transport::{BoxTransport, Builtin, Connection, Proxy, Tls, Transport};

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
    insecure: bool,
    credentials: Option<Result<Credentials, Error>>,
    connection: Connection,
    transport: Option<BoxTransport>,
    wrapper: Option<Wrapper>,
    user_agent: Option<String>,
    headers: Vec<(String, String)>,
    options: RequestOptions,
    backoff: Backoff,
    budget: RetryBudget,
    classifier: Option<Classifier>,
    policy: Policy,
    store: Option<SharedStore>,
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
            insecure: false,
            credentials: None,
            connection: Connection::default(),
            transport: None,
            wrapper: None,
            user_agent: None,
            headers: Vec::new(),
            options: RequestOptions::new(),
            backoff: Backoff::new(),
            budget: RetryBudget::new(),
            classifier: None,
            policy: Policy::default(),
            store: None,
            events: Events::default(),
            #[cfg(feature = "test-util")]
            isolated: false,
            #[cfg(feature = "test-util")]
            test_clock: None,
        }
    }

    /// Sets the API key that authorizes every request (specification, section 5).
    pub fn api_key(mut self, key: impl Into<ApiKey>) -> Self {
        self.credentials = Some(key.into().authorization().map(Credentials::Fixed));
        self
    }

    /// Sets a provider that returns the key for each request, instead of a fixed key.
    pub fn api_key_provider(mut self, provider: impl ApiKeyProvider) -> Self {
        self.credentials = Some(Ok(Credentials::provided(provider)));
        self
    }

    /// Allows plain http to other machines. Everyone on the network path can then read the key.
    pub fn allow_insecure_http(mut self, allow: bool) -> Self {
        self.insecure = allow;
        self
    }

    option_setters!();

    fn options_mut(&mut self) -> &mut RequestOptions {
        &mut self.options
    }

    /// Sets the time limit for connecting, including TLS (default: 10 s). It applies to all calls,
    /// because they share connections.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connection.connect_timeout = Some(limit);
        self
    }

    /// Sets the delays between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Limits the retries of all calls together.
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets a function that can override the decision to retry.
    /// [`RetryAdvice::Retry`](crate::retry::RetryAdvice::Retry) never repeats a request that may
    /// have been processed, unless it is idempotent. The [guide](crate::guide::retries) has an
    /// example.
    pub fn retry_classifier(
        mut self,
        classify: impl Fn(&FailedAttempt<'_>) -> RetryAdvice + Send + Sync + 'static,
    ) -> Self {
        self.classifier = Some(Box::new(classify));
        self
    }

    /// Sets the program's name and version in `User-Agent`, before the crate's: `kennel/2.1
    /// petstore-client/0.2` (RFC 9110, section 10.1.5).
    pub fn user_agent(mut self, product: impl Into<String>) -> Self {
        self.user_agent = Some(product.into());
        self
    }

    /// Adds a header to every request that does not set it. The client sets `Authorization`,
    /// `Host`, `Connection` and the headers for the body's length, and refuses them here.
    pub fn default_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets how long the built-in transport keeps an idle connection (default: 90 s).
    pub fn pool_idle_timeout(mut self, limit: Duration) -> Self {
        self.connection.pool_idle_timeout = Some(limit);
        self
    }

    /// Sets the proxy of the built-in transport. The default is the system's proxy, with the
    /// feature `system-proxy`. Requests to this machine never use a proxy.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.connection.proxy = Some(proxy);
        self
    }

    /// Trusts root certificates (PEM) in addition to the system's. A shortcut for
    /// [`Tls::root_certificates`].
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.connection.tls = Some(
            self.connection
                .tls
                .unwrap_or_default()
                .root_certificates(pem),
        );
        self
    }

    /// Sets the TLS settings of the built-in transport.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.connection.tls = Some(tls);
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

    /// Sets the maximum number of requests in flight of this client and its clones, at least 1.
    /// Other clients with the same key are not limited by it.
    ///
    /// The default follows the quotas: an eighth of the remaining requests, or more if the latency
    /// requires more to use the quota up, from 5 to 4,096. It is 5 if neither the service nor a
    /// [`plan`](Self::plan) shows the quota per minute, and fewer beside other users of the key.
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.policy.limit_in_flight(requests);
        self
    }

    /// Sets the plan of the key, for services that do not describe every quota. The client then
    /// counts its own requests per minute and day of the service. It cannot count those of other
    /// clients.
    pub fn plan(mut self, plan: Plan) -> Self {
        self.policy.terms_mut().set_plan(Some(plan));
        self
    }

    /// Sets the share of each window that this client may use, above 0 and up to 1. Use 0.25 for
    /// each of four programs that use the same key without shared limits.
    pub fn quota_share(mut self, share: f64) -> Self {
        self.policy.terms_mut().set_share(share);
        self
    }

    /// Sets whether calls wait for quotas (default: true). The client always obeys a 429. Switch
    /// this off for servers whose rate limit headers mean something else.
    pub fn rate_limiting(mut self, on: bool) -> Self {
        self.policy.terms_mut().set_limited(on);
        self
    }

    /// Shares the rate limits of a key fairly with all processes that use the same store.
    ///
    /// While the store is away, the client goes on with what it knows, and assumes that others
    /// use the key. [`Event::SharedStore`] reports when that begins and ends.
    #[cfg(any(feature = "file-store", feature = "redis"))]
    pub fn shared_limits(mut self, store: impl LimitsStore) -> Self {
        self.store = Some(store.into_shared_store());
        self
    }

    /// Adds a function that receives all events: requests, waits, 429s, retries and deprecations.
    /// It runs on the call's task and should return quickly. Events do not contain the API key, but
    /// may contain other secrets of the requests. The [guide](crate::guide::observability) has an example.
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
