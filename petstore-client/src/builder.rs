//! Builds a client, and checks every setting before the first request.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::base_url::BaseUrl;
use crate::client::Client;
use crate::deprecation::Deprecation;
use crate::error::Error;
use crate::gate::Gates;
use crate::keys::{KeyProvider, Keys};
use crate::notices::{Exchange, Hooks, Notices, Refusal, Wait};
use crate::options::{CallOptions, Limits};
use crate::pipeline::{Backoff, Pipeline};
use crate::quota::Policy;
use crate::retry::Budget;
use crate::secret::ApiKey;
use crate::tls;
use crate::transport::Transport;

const USER_AGENT: &str = concat!("petstore-client/", env!("CARGO_PKG_VERSION"));

/// Builds a [`Client`]; from [`Client::builder`].
///
/// ```
/// use std::time::Duration;
/// use petstore_client::{CallOptions, Client};
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .user_agent("kennel/2.1")
///     .defaults(CallOptions::new().timeout(Duration::from_secs(20)))
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct ClientBuilder {
    base_url: String,
    insecure: bool,
    keys: Option<KeySource>,
    http: reqwest::ClientBuilder,
    authorities: Option<Vec<u8>>,
    connect_timeout: Duration,
    defaults: CallOptions,
    policy: Policy,
    backoff: Backoff,
    user_agent: Option<String>,
    shared: Option<PathBuf>,
    hooks: Hooks,
}

enum KeySource {
    Fixed(ApiKey),
    Provided(Arc<dyn KeyProvider>),
}

impl Client {
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
            keys: None,
            http: reqwest::Client::builder(),
            authorities: None,
            connect_timeout: Duration::from_secs(10),
            defaults: CallOptions::new(),
            policy: Policy::default(),
            backoff: Backoff {
                first: Duration::from_millis(200),
                longest: Duration::from_secs(10),
            },
            user_agent: None,
            shared: None,
            hooks: Hooks::default(),
        }
    }

    /// Sets the API key that every request is signed with (specification, section 5).
    pub fn api_key(mut self, key: impl Into<ApiKey>) -> Self {
        self.keys = Some(KeySource::Fixed(key.into()));
        self
    }

    /// Sets where the key of each request comes from, in place of a fixed one.
    pub fn key_provider(mut self, provider: impl KeyProvider) -> Self {
        self.keys = Some(KeySource::Provided(Arc::new(provider)));
        self
    }

    /// Allows plain http to other machines than this one. The key can then be read on the way.
    pub fn allow_insecure_http(mut self, allow: bool) -> Self {
        self.insecure = allow;
        self
    }

    /// Sets the limits of all calls: by default 300 s for a call, 30 s for an attempt, 120 s of
    /// waiting for rate limits, 4 attempts, and 10 MiB for the body of a response.
    pub fn defaults(mut self, options: CallOptions) -> Self {
        self.defaults = options;
        self
    }

    /// Sets the time limit for connecting, TLS included; 10 s by default. Connections are shared
    /// between calls, so no call can change it.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets the back-off between attempts: full jitter over an interval that starts at `first`
    /// (200 ms by default) and doubles up to `longest` (10 s).
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = Backoff { first, longest };
        self
    }

    /// Sets how many requests may be under way at once. By default it is a tenth of the
    /// quota's limit, at least 32 and at most 256.
    pub fn max_in_flight(mut self, most: u32) -> Self {
        self.policy.max_in_flight = Some(most);
        self
    }

    /// Sets the plan of the key, in requests per minute and per day (specification, section 8), for
    /// services that do not show every quota that is in force. Own requests are then counted too,
    /// in the service's minutes and days; those of others cannot be.
    pub fn quota(mut self, per_minute: u64, per_day: u64) -> Self {
        self.policy.plan = Some((per_minute, per_day));
        self
    }

    /// Sets the part of each quota that this client may use, above 0 and up to 1: a quarter for
    /// each of four programs that share a key and do not know of each other.
    pub fn quota_share(mut self, share: f64) -> Self {
        self.policy.share = share;
        self
    }

    /// Spreads requests over the quota's window, in place of letting them go as they come.
    pub fn pacing(mut self, pacing: bool) -> Self {
        self.policy.pacing = pacing;
        self
    }

    /// Shares the limits of a key with the other processes of this machine that name the same
    /// folder, so that together they are not refused either. What is known is kept in a file there,
    /// one for each key and origin, which is locked for some microseconds at a time; the folder is
    /// made where it is missing. The key cannot be had from the files.
    ///
    /// Where a file cannot be had, the client goes on by itself, and as carefully as where others
    /// use the key unseen. A file that is damaged is replaced. Processes need the same idea of the
    /// time, as they have on one machine; the folder should not be on a network.
    ///
    /// ```no_run
    /// use petstore_client::Client;
    ///
    /// let client = Client::builder("https://petstore.example/v1")
    ///     .api_key("s3cret")
    ///     .shared_limits("/var/lib/kennel/limits")
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn shared_limits(mut self, folder: impl Into<PathBuf>) -> Self {
        self.shared = Some(folder.into());
        self
    }

    /// Switches the quota gate off. Refusals are still obeyed: what the service answers with 429
    /// holds all calls back. For servers whose rate limit headers mean something else.
    pub fn quota_gate(mut self, on: bool) -> Self {
        self.policy.gated = on;
        self
    }

    /// Adds the program's own name to the `User-Agent` (RFC 9110, section 10.1.5).
    pub fn user_agent(mut self, product: impl Into<String>) -> Self {
        self.user_agent = Some(product.into());
        self
    }

    /// Sets a function that hears of each deprecated operation, once for this client and its
    /// clones, with the operation's name.
    pub fn on_deprecation(
        mut self,
        hook: impl Fn(&str, &Deprecation) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.on_deprecation = Some(Arc::new(hook));
        self
    }

    /// Sets a function that hears of each wait that a rate limit asks for, before it begins, so
    /// that a program can show why nothing happens. Of calls that stand in line already the first
    /// is told for all.
    pub fn on_wait(mut self, hook: impl Fn(&Wait<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.on_wait = Some(Arc::new(hook));
        self
    }

    /// Sets a function that hears of each refusal (429, or 503 with `Retry-After`) when it comes,
    /// whether the call is then sent again or fails. A client that keeps within the limits hardly
    /// ever calls it: where it does, others use the key, or the limits are not shown.
    ///
    /// ```
    /// use petstore_client::Client;
    ///
    /// let client = Client::builder("https://petstore.example/v1")
    ///     .api_key("s3cret")
    ///     .on_refusal(|refusal| {
    ///         eprintln!("{} was refused for {}", refusal.operation, refusal.quota);
    ///     })
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn on_refusal(mut self, hook: impl Fn(&Refusal<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.on_refusal = Some(Arc::new(hook));
        self
    }

    /// Sets a function that hears of each attempt when it has ended: what was sent, and what came.
    /// For logs and for people who look for a fault; the key is not in it, what else is secret may
    /// be.
    ///
    /// ```
    /// use petstore_client::Client;
    ///
    /// let client = Client::builder("https://petstore.example/v1")
    ///     .api_key("s3cret")
    ///     .on_exchange(|exchange| match &exchange.answer {
    ///         Ok(answer) => eprintln!("{} {}: {}", exchange.method, exchange.url, answer.status),
    ///         Err(error) => eprintln!("{} {}: {error}", exchange.method, exchange.url),
    ///     })
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn on_exchange(mut self, hook: impl Fn(&Exchange<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.on_exchange = Some(Arc::new(hook));
        self
    }

    /// Sets the HTTP client to build on: proxies, certificates, DNS. Redirects, reqwest's own
    /// retries, its verbose log and the `Referer` are switched off all the same, since they would
    /// send the key elsewhere, show it, or escape the accounting.
    pub fn http_client(mut self, http: reqwest::ClientBuilder) -> Self {
        self.http = http;
        self
    }

    /// Sets certificate authorities to trust beside the system's, as PEM: a company's own, or that of a
    /// mock. They matter for https only.
    ///
    /// ```
    /// use petstore_client::Client;
    ///
    /// # let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    /// let client = Client::builder("http://127.0.0.1:4010/v1")
    ///     .api_key("s3cret")
    ///     .certificate_authorities(pem)
    ///     .build()?;
    /// # let _ = client;
    /// # Ok::<(), petstore_client::Error>(())
    /// ```
    pub fn certificate_authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities = Some(pem.into());
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    ///
    /// Where the base URL, the key or another setting cannot be used; the message says which, and
    /// what is wrong with it.
    pub fn build(mut self) -> Result<Client, Error> {
        let base = BaseUrl::parse(&self.base_url, self.insecure)?;
        let keys = match &self.keys {
            Some(KeySource::Fixed(key)) => Keys::fixed(key)?,
            Some(KeySource::Provided(provider)) => Keys::Provided(Arc::clone(provider)),
            None => {
                return Err(Error::config(
                    "API key",
                    "none was given; set `api_key` or `key_provider`",
                ));
            }
        };
        if !(self.policy.share > 0.0 && self.policy.share <= 1.0) {
            let problem = format!("it is {}, and must be above 0 and at most 1", self.policy.share);
            return Err(Error::config("quota share", problem));
        }
        let limits = Limits { policy: self.policy, ..Limits::default() };
        let pipeline = Pipeline {
            transport: Transport {
                home: base.as_url().clone(),
                connect_timeout: self.connect_timeout,
                http: self.http(&base)?,
            },
            keys,
            gates: Gates::new(base.as_url().clone(), self.shared),
            limits: limits.with(&self.defaults),
            budget: Mutex::new(Budget::new()),
            backoff: self.backoff,
            notices: Notices::new(self.hooks),
        };
        Ok(Client::new(pipeline, base))
    }
}

impl ClientBuilder {
    fn http(&mut self, base: &BaseUrl) -> Result<reqwest::Client, Error> {
        let agent = match &self.user_agent {
            Some(product) => format!("{USER_AGENT} {product}"),
            None => USER_AGENT.to_owned(),
        };
        let agent = http::HeaderValue::try_from(agent)
            .map_err(|_| Error::config("user agent", "it cannot be written into a header"))?;
        let given = std::mem::take(&mut self.http);
        let mut http = tls::prepare(given, base, self.authorities.as_deref())?
            .user_agent(agent)
            .connect_timeout(self.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connection_verbose(false)
            .referer(false);
        if base.is_loopback() {
            // A proxy could not reach this machine's loopback, and would see the key.
            http = http.no_proxy();
        }
        let problem = |error: reqwest::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            Error::config("HTTP client", cause.unwrap_or_else(|| error.to_string()))
        };
        http.build().map_err(problem)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "only `from_env` reads the environment, and its caller asked for that"
)]
fn variable(name: &str, part: &'static str) -> Result<String, Error> {
    std::env::var(name).map_err(|problem| match problem {
        std::env::VarError::NotPresent => Error::config(part, format!("`{name}` is not set")),
        std::env::VarError::NotUnicode(_) => {
            Error::config(part, format!("`{name}` is not valid Unicode"))
        }
    })
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            // Before it is checked it may hold a password.
            .field("base_url", &BaseUrl::parse(&self.base_url, true).ok())
            .field("defaults", &self.defaults)
            .finish_non_exhaustive()
    }
}
