//! Builds a client, and checks every setting before the first request.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::auth::{ApiKey, ApiKeyProvider, Credentials};
use crate::backoff::Backoff;
use crate::call::Core;
use crate::client::Client;
use crate::clock;
use crate::error::Error;
use crate::events::{Event, Events};
use crate::http::base_url::BaseUrl;
use crate::http::tls;
use crate::http::transport::HttpTransport;
use crate::options::{CallLimits, RequestOptions, option_setters};
use crate::rate_limit::{AnyStore, ClientLimiters, LimitStore, Plan, Policy};
use crate::retry::{BudgetState, RetryBudget};

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
    http: reqwest::ClientBuilder,
    roots: Option<Vec<u8>>,
    connect_timeout: Duration,
    options: RequestOptions,
    policy: Policy,
    backoff: Backoff,
    budget: RetryBudget,
    user_agent: Option<String>,
    store: Option<Arc<dyn AnyStore>>,
    events: Events,
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
            http: reqwest::Client::builder(),
            roots: None,
            connect_timeout: Duration::from_secs(10),
            options: RequestOptions::new(),
            policy: Policy::default(),
            backoff: Backoff::new(),
            budget: RetryBudget::new(),
            user_agent: None,
            store: None,
            events: Events::default(),
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
        self.connect_timeout = limit;
        self
    }

    /// Sets the pauses between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets how many retries all calls together may make.
    pub fn retry_budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Adds the program's own name to the `User-Agent` (RFC 9110, section 10.1.5).
    pub fn user_agent(mut self, product: impl Into<String>) -> Self {
        self.user_agent = Some(product.into());
        self
    }

    /// Sets the HTTP client to build on: proxies, certificates, DNS. Redirects, reqwest's own
    /// retries, its verbose log and the `Referer` are switched off all the same, since they would
    /// send the key elsewhere, show it, or escape the accounting.
    pub fn http_client(mut self, http: reqwest::ClientBuilder) -> Self {
        self.http = http;
        self
    }

    /// Sets root certificates to trust beside the system's, as PEM: a company's own, or that of a
    /// mock. They matter for https only.
    ///
    /// ```
    /// use petstore_client::Client;
    ///
    /// # let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    /// let client = Client::builder("http://127.0.0.1:4010/v1")
    ///     .api_key("s3cret")
    ///     .root_certificates(pem)
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
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
        let http = self.http(&base)?;
        let transport = HttpTransport::new(http, base.as_url().clone()).map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            Error::config("HTTP client", cause.unwrap_or_else(|| error.to_string()))
        })?;
        Ok(Client::of(Core {
            transport,
            credentials,
            limiters: ClientLimiters::new(base.as_url().clone(), self.store),
            base,
            limits: CallLimits::default().with(&self.options),
            policy: self.policy,
            connect_timeout: self.connect_timeout,
            backoff: self.backoff,
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
        match self.budget.problem() {
            Some(problem) => Err(Error::config("retry budget", problem)),
            None => Ok(()),
        }
    }

    fn http(&mut self, base: &BaseUrl) -> Result<reqwest::ClientBuilder, Error> {
        let agent = match &self.user_agent {
            Some(product) => format!("{USER_AGENT} {product}"),
            None => USER_AGENT.to_owned(),
        };
        let agent = http::HeaderValue::try_from(agent)
            .map_err(|_| Error::config("user agent", "it cannot be written into a header"))?;
        let given = std::mem::take(&mut self.http);
        let http = tls::configure(given, base, self.roots.as_deref())
            .map_err(|(setting, problem)| Error::config(setting, problem))?
            .user_agent(agent)
            .connect_timeout(self.connect_timeout);
        // A proxy could not reach this machine's loopback, and would see the key.
        Ok(if base.is_loopback() { http.no_proxy() } else { http })
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
