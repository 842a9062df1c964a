//! Builds a client, and checks its settings.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use crate::auth::{ApiKey, ApiKeyProvider, Credentials};
use crate::backoff::Backoff;
use crate::client::{Client, Core};
use crate::error::Error;
use crate::events::{Event, Events};
use crate::http::base_url::BaseUrl;
use crate::options::{RequestOptions, option_setters};
#[cfg(feature = "shared-limits")]
use crate::rate_limit::LimitStore;
#[cfg(feature = "test-util")]
use crate::rate_limit::TestClock;
use crate::rate_limit::{AnyStore, ClientLimiters, Plan, Policy};
use crate::request::additional_header;
use crate::retry::{Classifier, FailedAttempt, Retries, RetryAdvice, RetryBudget};
use crate::transport::{Connection, DynTransport, Network, Proxy, Route, Tls, Transport};

const USER_AGENT: &str = concat!("petstore-client/", env!("CARGO_PKG_VERSION"));

/// Builds a [`Client`]; from [`Client::builder`].
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
    transport: Option<Box<dyn DynTransport>>,
    user_agent: Option<String>,
    headers: Vec<(String, String)>,
    options: RequestOptions,
    backoff: Backoff,
    budget: RetryBudget,
    classifier: Option<Classifier>,
    policy: Policy,
    store: Option<Arc<dyn AnyStore>>,
    events: Events,
    #[cfg(feature = "test-util")]
    isolated: bool,
    #[cfg(feature = "test-util")]
    test_clock: Option<TestClock>,
}

impl Client {
    /// Creates a client with default settings.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config), where the base URL or the key cannot be used.
    pub fn new(base_url: impl Into<String>, api_key: impl Into<ApiKey>) -> Result<Self, Error> {
        Self::builder(base_url).api_key(api_key).build()
    }

    /// Starts building a client for a base address, version segment included.
    pub fn builder(base_url: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(base_url.into())
    }

    /// Builds a client from the environment: `PETSTORE_BASE_URL` and `PETSTORE_API_KEY`.
    ///
    /// # Errors
    ///
    /// Where a variable is missing, is not Unicode, or holds what cannot be used.
    pub fn from_env() -> Result<Self, Error> {
        ClientBuilder::from_env()?.build()
    }
}

impl ClientBuilder {
    /// Starts building a client from the environment: `PETSTORE_BASE_URL` and `PETSTORE_API_KEY`.
    ///
    /// # Errors
    ///
    /// Where a variable is missing or is not Unicode.
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

    /// Sets where the key of each request comes from, in place of a fixed one.
    pub fn api_key_provider(mut self, provider: impl ApiKeyProvider) -> Self {
        self.credentials = Some(Ok(Credentials::provided(provider)));
        self
    }

    /// Allows plain http to other machines, which shows the key to everyone on the way.
    pub fn allow_insecure_http(mut self, allow: bool) -> Self {
        self.insecure = allow;
        self
    }

    option_setters!();

    fn options_mut(&mut self) -> &mut RequestOptions {
        &mut self.options
    }

    /// Sets the time limit for connecting, TLS included; 10 s by default. Connections are shared
    /// between calls, so no call can change it.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connection.connect_timeout = Some(limit);
        self
    }

    /// Sets the pauses between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Limits the retries of all calls together.
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets a function that advises on retries.
    /// [`RetryAdvice::Retry`](crate::retry::RetryAdvice::Retry) never repeats a request that may have
    /// been processed, unless it is idempotent. The [guide](crate::guide::retries) has an example.
    pub fn retry_classifier(
        mut self,
        classify: impl Fn(&FailedAttempt<'_>) -> RetryAdvice + Send + Sync + 'static,
    ) -> Self {
        self.classifier = Some(Box::new(classify));
        self
    }

    /// Sets the program's own name, before the crate's: `kennel/2.1 petstore-client/0.2` (RFC 9110,
    /// section 10.1.5).
    pub fn user_agent(mut self, product: impl Into<String>) -> Self {
        self.user_agent = Some(product.into());
        self
    }

    /// Adds a header to every request that does not set it itself. `Authorization`, `Host`,
    /// `Connection` and those of the body's length are refused: the client sets them.
    pub fn default_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets how long the built-in transport keeps a connection that is not used; 90 s.
    pub fn pool_idle_timeout(mut self, limit: Duration) -> Self {
        self.connection.pool_idle_timeout = Some(limit);
        self
    }

    /// Sets the proxy of the built-in transport; by default the system's, with the feature
    /// `system-proxy`. It is never used for a service on this machine.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.connection.proxy = Some(proxy);
        self
    }

    /// Sets root certificates to trust beside the system's, as PEM: short for
    /// [`Tls::root_certificates`].
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.connection.tls = Some(self.connection.tls.unwrap_or_default().root_certificates(pem));
        self
    }

    /// Sets how the built-in transport does TLS.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.connection.tls = Some(tls);
        self
    }

    /// Replaces the built-in transport. Settings of the built-in one are refused beside it. See
    /// [`Transport`] for what a transport has to do.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(Box::new(transport));
        self
    }

    /// Sets the number of requests that may be in flight at once, at least 1. The default follows the
    /// quotas: an eighth of what is left or what it takes to use that up, within 32 to 4,096; and 5
    /// where the minute's quota is not known, neither from the service nor from a [`plan`](Self::plan).
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.policy.max_in_flight = Some(requests);
        self
    }

    /// Sets the plan of the key, for services that do not describe every quota. The client then counts
    /// its requests in the service's minutes and days; it cannot count those of other clients.
    pub fn plan(mut self, plan: Plan) -> Self {
        self.policy.plan = Some(plan);
        self
    }

    /// Sets the part of each quota that this client may use, above 0 and up to 1: 0.25 for each of four
    /// programs that use the same key and no shared limits.
    pub fn quota_share(mut self, share: f64) -> Self {
        self.policy.share = share;
        self
    }

    /// Sets whether calls wait for quotas; true. A 429 is obeyed in any case. Switch it off for servers
    /// whose rate limit headers mean something else.
    pub fn rate_limiting(mut self, on: bool) -> Self {
        self.policy.rate_limiting = on;
        self
    }

    /// Shares the limits of a key with the processes that use the same store, so that together they
    /// stay within the limits, and each gets its part.
    ///
    /// While the store cannot be reached, the client works alone, as carefully as beside other clients
    /// of the key. [`Event::SharedStore`] reports that and its end.
    #[cfg(feature = "shared-limits")]
    pub fn shared_limits(mut self, store: impl LimitStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Adds a function that gets all events: requests, waits, 429s, retries, deprecations. It runs on
    /// the call's task and should return quickly. Events hold no API key, unless the service sends it in
    /// the body of a success; they may hold other secrets of the requests. The [guide](crate::guide::observability) has an example.
    pub fn on_event(mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.events.add(hook);
        self
    }

    /// Shares no rate limits with other clients of the process that use the same key: for tests, whose
    /// servers use the same ports again.
    #[cfg(feature = "test-util")]
    pub fn isolated_limits(mut self) -> Self {
        self.isolated = true;
        self
    }

    /// Sets the service's clock, for tests that move it: limits follow it without a request, and a call
    /// that waits sees it within 10 ms. It implies [`isolated_limits`](Self::isolated_limits), and cannot
    /// be used with shared limits.
    #[cfg(feature = "test-util")]
    pub fn service_clock(
        mut self,
        now: impl Fn() -> std::time::SystemTime + Send + Sync + 'static,
    ) -> Self {
        self.isolated = true;
        self.test_clock = Some(TestClock::new(now));
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Where the base URL, the key or another setting cannot be used; the message says which, and
    /// what is wrong with it.
    pub fn build(mut self) -> Result<Client, Error> {
        let base = BaseUrl::parse(&self.base_url, self.insecure)
            .map_err(|problem| Error::config("base URL", problem))?;
        let credentials = self.credentials.take().unwrap_or_else(|| {
            Err(Error::config("API key", "none was given; set `api_key` or `api_key_provider`"))
        })?;
        self.check()?;
        let headers = self.headers()?;
        let route = match self.transport {
            Some(transport) => Route::Custom(transport),
            None => self.connection.route(&base)?,
        };
        let limiters = ClientLimiters::new(base.as_url().clone(), self.store);
        #[cfg(feature = "test-util")]
        let limiters = if self.isolated { limiters.isolated(self.test_clock) } else { limiters };
        let core = Core {
            network: Network::new(base.as_url(), route),
            base,
            credentials,
            limiters,
            policy: self.policy,
            headers,
            retries: Retries::new(self.backoff, self.classifier, self.budget),
            events: self.events,
            store_changes: AtomicU64::new(0),
        };
        Ok(Client { core: Arc::new(core), options: self.options })
    }

    fn check(&self) -> Result<(), Error> {
        let fail = |setting, problem: &str| Err(Error::config(setting, problem));
        let Policy { max_in_flight, share, plan, .. } = self.policy;
        if self.options.max_attempts == Some(0) {
            return fail("number of attempts", "it must be at least 1");
        }
        if !(share > 0.0 && share <= 1.0) {
            let problem = format!("it is {share}, and must be above 0 and at most 1");
            return fail("quota share", &problem);
        }
        if max_in_flight == Some(0) {
            return fail("number of requests in flight", "it must be at least 1");
        }
        if plan.is_some_and(|plan| plan.per_minute == Some(0) || plan.per_day == Some(0)) {
            return fail("plan", "a quota of 0 would block every call");
        }
        if let Some(problem) = self.budget.problem() {
            return fail("retry budget", &problem);
        }
        #[cfg(feature = "test-util")]
        if self.test_clock.is_some() && self.store.is_some() {
            return fail("service clock", "shared limits do not work with it");
        }
        match self.connection.any() {
            Some(setting) if self.transport.is_some() => {
                fail(setting, "it is for the built-in transport, which `transport` replaces")
            }
            _ => Ok(()),
        }
    }

    /// Returns the headers of every request.
    fn headers(&self) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let agent = match &self.user_agent {
            Some(product) => format!("{product} {USER_AGENT}").try_into(),
            None => Ok(HeaderValue::from_static(USER_AGENT)),
        };
        let agent =
            agent.map_err(|_| Error::config("user agent", "it cannot be written into a header"))?;
        headers.insert(header::USER_AGENT, agent);
        for (name, value) in &self.headers {
            let (name, value) = additional_header(name, value.as_str())
                .map_err(|problem| Error::config("default header", problem))?;
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "only `from_env` reads the environment, and its caller asked for that"
)]
fn variable(name: &str, setting: &'static str) -> Result<String, Error> {
    std::env::var(name).map_err(|problem| match problem {
        std::env::VarError::NotPresent => Error::config(setting, format!("`{name}` is not set")),
        std::env::VarError::NotUnicode(_) => {
            Error::config(setting, format!("`{name}` is not valid Unicode"))
        }
    })
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            // Before it is checked it may hold a password.
            .field("base_url", &BaseUrl::parse(&self.base_url, true).ok())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
