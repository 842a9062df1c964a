//! Builds a client, and checks every setting before the first request.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::base_url::BaseUrl;
use crate::client::Client;
use crate::error::Error;
use crate::gate::Gates;
use crate::keys::{KeyProvider, Keys};
use crate::notices::{Hooks, Notices};
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
    pub(super) policy: Policy,
    backoff: Backoff,
    user_agent: Option<String>,
    pub(super) shared: Option<PathBuf>,
    pub(super) hooks: Hooks,
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
