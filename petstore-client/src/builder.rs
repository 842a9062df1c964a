//! Builds a client, and checks every setting before the first request.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use crate::auth::{ApiKey, ApiKeyProvider, Credentials};
use crate::backoff::Backoff;
use crate::call::{Core, additional_header};
use crate::client::Client;
use crate::clock;
use crate::error::Error;
use crate::events::{Event, Events};
use crate::http::base_url::BaseUrl;
use crate::options::{CallLimits, RequestOptions, option_setters};
#[cfg(feature = "shared-limits")]
use crate::rate_limit::LimitStore;
#[cfg(feature = "test-util")]
use crate::rate_limit::TestClock;
use crate::rate_limit::{AnyStore, ClientLimiters, Plan, Policy};
use crate::retry::{BudgetState, FailedAttempt, RetryAdvice, RetryBudget, RetryPolicy};
use crate::transport::{Connection, DynTransport, Network, Proxy, Tls, Transport};

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
    headers: Vec<(String, String)>,
    options: RequestOptions,
    policy: Policy,
    retry: RetryPolicy,
    budget: RetryBudget,
    user_agent: Option<String>,
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
            headers: Vec::new(),
            options: RequestOptions::new(),
            policy: Policy::default(),
            retry: RetryPolicy::default(),
            budget: RetryBudget::new(),
            user_agent: None,
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
        self.credentials = Some(Credentials::fixed(&key.into()));
        self
    }

    /// Sets where the key of each request comes from, in place of a fixed one.
    pub fn api_key_provider(mut self, provider: impl ApiKeyProvider) -> Self {
        self.credentials = Some(Ok(Credentials::provided(provider)));
        self
    }

    /// Allows plain http to other machines than this one. The key can then be read on the way.
    pub fn allow_insecure_http(mut self, allow: bool) -> Self {
        self.insecure = allow;
        self
    }

    option_setters!(options);

    /// Sets the time limit for connecting, TLS included; 10 s by default. Connections are shared
    /// between calls, so no call can change it.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connection.connect_timeout = Some(limit);
        self
    }

    /// Sets the pauses between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.retry.backoff = backoff;
        self
    }

    /// Sets how many retries all calls together may make.
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets a function that may decide otherwise about an attempt that failed. It cannot do a thing
    /// twice by accident: [`RetryAdvice::Retry`](crate::retry::RetryAdvice::Retry) holds where that
    /// is safe.
    ///
    /// ```
    /// use petstore_client::{Client, retry::RetryAdvice};
    ///
    /// let client = Client::builder("https://petstore.example/v1")
    ///     .api_key("s3cret")
    ///     .retry_classifier(|attempt| match attempt.error.code() {
    ///         Some("reindexing") => RetryAdvice::Retry,
    ///         _ => RetryAdvice::Default,
    ///     })
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn retry_classifier(
        mut self,
        classify: impl Fn(&FailedAttempt<'_>) -> RetryAdvice + Send + Sync + 'static,
    ) -> Self {
        self.retry.classifier = Some(Box::new(classify));
        self
    }

    /// Sets the program's own name, before the crate's: `kennel/2.1 petstore-client/0.2` (RFC 9110,
    /// section 10.1.5).
    pub fn user_agent(mut self, product: impl Into<String>) -> Self {
        self.user_agent = Some(product.into());
        self
    }

    /// Adds a header to every request. `Authorization`, `Host` and those that frame the message are
    /// the client's own; a request that sets the header itself keeps its own.
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
    /// `system-proxy`. A service on this machine is never asked through one.
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

    /// Replaces the built-in transport. What is set of that one besides is refused.
    ///
    /// See [`Transport`] for what one has to do, and [`transport`](crate::transport) for examples.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(Box::new(transport));
        self
    }

    /// Sets how many requests may be in flight at once, at least 1. By default it depends on what
    /// is left of the quotas: an eighth, and what it takes to use them up, but 32 to 4,096; and
    /// 5 where the service does not describe its minute's quota and no [`plan`](Self::plan) is set.
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.policy.max_in_flight = Some(requests);
        self
    }

    /// Sets the plan of the key, for services that do not describe every quota that is in force.
    /// Own requests are then counted as well, in the service's minutes and days; those of other
    /// clients cannot be.
    ///
    /// ```
    /// use petstore_client::{Client, rate_limit::Plan};
    ///
    /// let client = Client::builder("https://petstore.example/v1")
    ///     .api_key("s3cret")
    ///     .plan(Plan::PRO)
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn plan(mut self, plan: Plan) -> Self {
        self.policy.plan = Some(plan);
        self
    }

    /// Sets the part of each quota that this client may use, above 0 and up to 1: a quarter for
    /// each of four programs that share a key and do not know of each other.
    pub fn quota_share(mut self, share: f64) -> Self {
        self.policy.share = share;
        self
    }

    /// Sets whether quotas hold requests back; true. A 429 is obeyed in any case. Switch it off for
    /// servers whose rate limit headers mean something else.
    pub fn rate_limiting(mut self, on: bool) -> Self {
        self.policy.rate_limiting = on;
        self
    }

    /// Shares the limits of a key with the other processes that use the same store, so that together
    /// they are not refused either, and each gets its part.
    ///
    /// Where the store is out of reach, the client goes on alone, as carefully as where other clients
    /// use the key, and comes back by itself: [`Event::SharedStore`] says so.
    #[cfg(feature = "shared-limits")]
    pub fn shared_limits(mut self, store: impl LimitStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Adds a function that is told what happens: requests, waits, 429s, retries, deprecations. It
    /// runs on the call's task and should return quickly. The key is in no event; what else is
    /// secret may be.
    ///
    /// ```
    /// use petstore_client::{Client, events::Event};
    ///
    /// let client = Client::builder("https://petstore.example/v1")
    ///     .api_key("s3cret")
    ///     .on_event(|event| match event {
    ///         Event::Throttled(throttled) => eprintln!("{}", throttled.blocked),
    ///         Event::Deprecated { operation, deprecation } => {
    ///             eprintln!("{operation} ends at {:?}", deprecation.sunset());
    ///         }
    ///         _ => {}
    ///     })
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn on_event(mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.events.add(hook);
        self
    }

    /// Keeps what is known of rate limits apart from the other clients of the process that use the
    /// same key: for tests, which meet on ports that are used again.
    #[cfg(feature = "test-util")]
    pub fn isolated_limits(mut self) -> Self {
        self.isolated = true;
        self
    }

    /// Sets the service's clock, for tests that move it: what becomes of a limit is then known
    /// without a request, and a call that waits sees it within 10 ms. It implies
    /// [`isolated_limits`](Self::isolated_limits), and serves no shared ones.
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
        let network = match self.transport {
            Some(transport) => Network::custom(base.as_url().clone(), transport),
            None => {
                let http = self.connection.client(&base)?;
                Network::builtin(base.as_url().clone(), http, self.connection.connect_timeout())
            }
        };
        let limiters = ClientLimiters::new(base.as_url().clone(), self.store);
        #[cfg(feature = "test-util")]
        let limiters = if self.isolated { limiters.isolated(self.test_clock) } else { limiters };
        Ok(Client::of(Core {
            network,
            credentials,
            limiters,
            base,
            limits: CallLimits::default().with(&self.options),
            policy: self.policy,
            headers,
            retry: self.retry,
            budget: Mutex::new(BudgetState::new(self.budget)),
            events: self.events,
            store_changes: AtomicU64::new(0),
            started: clock::now(),
        }))
    }

    fn check(&self) -> Result<(), Error> {
        if let Some((setting, problem)) = self.options.problem() {
            return Err(Error::config(setting, problem));
        }
        let Policy { max_in_flight, share, plan, .. } = self.policy;
        if !(share > 0.0 && share <= 1.0) {
            let problem = format!("it is {share}, and must be above 0 and at most 1");
            return Err(Error::config("quota share", problem));
        }
        if max_in_flight == Some(0) {
            return Err(Error::config("number of requests in flight", "it must be at least 1"));
        }
        if plan.is_some_and(|plan| plan.per_minute == Some(0) || plan.per_day == Some(0)) {
            return Err(Error::config("plan", "a quota of 0 would block every call"));
        }
        #[cfg(feature = "test-util")]
        if self.test_clock.is_some() && self.store.is_some() {
            let problem = "it serves no limits that processes share";
            return Err(Error::config("service clock", problem));
        }
        if self.transport.is_some()
            && let Some(setting) = self.connection.any()
        {
            let problem = "it is for the built-in transport, which `transport` replaces";
            return Err(Error::config(setting, problem));
        }
        match self.budget.problem() {
            Some(problem) => Err(Error::config("retry budget", problem)),
            None => Ok(()),
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
