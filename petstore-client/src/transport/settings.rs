//! Settings of the built-in transport.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::builtin::Builtin;
use super::cause::Resolver;
use crate::error::Error;
use crate::wire::base_url::BaseUrl;

/// TLS settings.
///
/// ```
/// use petstore_client::transport::Tls;
///
/// # let company_ca = "";
/// let tls = Tls::new().root_certificates(company_ca).only_root_certificates(true);
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Tls {
    backend: Option<TlsBackend>,
    roots: Option<Vec<u8>>,
    only_roots: bool,
    /// The client certificate with its private key.
    identity: Option<Vec<u8>>,
}

/// A TLS library. Features choose which ones exist.
///
/// The first of those that exist is the default. `native-tls` comes before `rustls`, because cargo
/// combines the features of all packages. So a program that enables `native-tls` keeps it, even if
/// another package of the program enables this crate's default features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsBackend {
    /// The system's library.
    #[cfg(feature = "native-tls")]
    Native,
    /// rustls with the crypto provider that the program installed, or else with aws-lc-rs.
    #[cfg(feature = "rustls")]
    Rustls,
    /// rustls with the crypto provider that the program installed. Without a provider, building the
    /// client fails.
    #[cfg(feature = "rustls-no-provider")]
    Installed,
}

impl Tls {
    /// Creates the default: the first available backend, in the order of [`TlsBackend`], and the
    /// system's certificates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the TLS library.
    pub fn backend(mut self, backend: TlsBackend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Trusts certificate authorities (PEM) in addition to the system's. Only for https. Can be
    /// called several times.
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        let roots = self.roots.get_or_insert_default();
        roots.extend_from_slice(pem.as_ref());
        roots.push(b'\n');
        self
    }

    /// Sets whether to trust only the given certificates, and not the system's.
    pub fn only_root_certificates(mut self, only: bool) -> Self {
        self.only_roots = only;
        self
    }

    /// Sets a client certificate: its chain and private key (PKCS #8), as PEM.
    pub fn client_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.identity = Some(pem.into());
        self
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

/// The proxy of the built-in transport. Requests to this machine never use it.
///
/// ```
/// use petstore_client::transport::Proxy;
///
/// let proxy = Proxy::all("http://proxy.internal:3128").basic_auth("kennel", "secret");
/// assert!(!format!("{proxy:?}").contains("secret"));
/// ```
#[derive(Clone)]
#[must_use]
pub struct Proxy(Option<Result<reqwest::Proxy, &'static str>>);

impl Proxy {
    /// Uses one proxy for all requests, such as `http://proxy.internal:3128`.
    pub fn all(url: impl AsRef<str>) -> Self {
        // The parser's message may contain a password.
        Self(Some(
            reqwest::Proxy::all(url.as_ref()).map_err(|_| "its URL is not valid"),
        ))
    }

    /// Uses no proxy, and ignores the system's settings.
    pub fn none() -> Self {
        Self(None)
    }

    /// Sets the user and password for the proxy.
    pub fn basic_auth(self, user: &str, password: &str) -> Self {
        Self(
            self.0
                .map(|proxy| proxy.map(|proxy| proxy.basic_auth(user, password))),
        )
    }

    /// Sets the hosts that bypass the proxy, in the format of `NO_PROXY`: `.internal,10.0.0.0/8`.
    pub fn no_proxy(self, hosts: &str) -> Self {
        let hosts = reqwest::NoProxy::from_string(hosts);
        Self(self.0.map(|proxy| proxy.map(|proxy| proxy.no_proxy(hosts))))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proxy(…)")
    }
}

/// How the built-in transport connects, for
/// [`ClientBuilder::connection`](crate::ClientBuilder::connection).
///
/// ```
/// use std::time::Duration;
/// use petstore_client::Client;
/// use petstore_client::transport::Connection;
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .connection(Connection::new().connect_timeout(Duration::from_secs(3)))
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Connection {
    connect_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    proxy: Option<Proxy>,
    tls: Option<Tls>,
    allows_insecure_http: bool,
}

impl Connection {
    /// Creates the default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time limit for connecting, including TLS (default: 10 s).
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = Some(limit);
        self
    }

    /// Sets how long an idle connection is kept (default: 90 s).
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.idle_timeout = Some(limit);
        self
    }

    /// Sets the proxy. The default is the system's proxy, with the feature `system-proxy`. Requests to
    /// this machine never use a proxy.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Sets the TLS settings.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Trusts root certificates (PEM) in addition to the system's. A shortcut for
    /// [`Tls::root_certificates`].
    pub fn roots(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.tls = Some(self.tls.unwrap_or_default().root_certificates(pem));
        self
    }

    /// Allows plain http to other machines, also for a program's own transport. Everyone on the network
    /// path can then read the key.
    pub fn allow_insecure_http(mut self, allow: bool) -> Self {
        self.allows_insecure_http = allow;
        self
    }

    pub(crate) fn allows_insecure_http(&self) -> bool {
        self.allows_insecure_http
    }

    /// Returns the name of a setting that only the built-in transport has, if one is set.
    pub(crate) fn of_builtin(&self) -> Option<&'static str> {
        let set = [
            ("time limit for connecting", self.connect_timeout.is_some()),
            ("idle time of connections", self.idle_timeout.is_some()),
            ("proxy", self.proxy.is_some()),
            ("TLS setting", self.tls.is_some()),
        ];
        set.into_iter()
            .find_map(|(name, is_set)| is_set.then_some(name))
    }

    /// Builds the HTTP client for a base URL. Disables reqwest's redirects, retries and `Referer`,
    /// which would send the key elsewhere, or send requests that the rate limiter does not count.
    pub(crate) fn build(&self, base: &BaseUrl) -> Result<Builtin, Error> {
        let connect_timeout = self.connect_timeout.unwrap_or(Duration::from_secs(10));
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .dns_resolver(Arc::new(Resolver))
            .connect_timeout(connect_timeout)
            .pool_idle_timeout(self.idle_timeout.unwrap_or(Duration::from_secs(90)));
        http = match &self.proxy {
            // A proxy could not reach this machine's loopback addresses, and would see the key.
            _ if base.is_loopback() => http.no_proxy(),
            None if cfg!(feature = "system-proxy") => http,
            // Otherwise reqwest would read the proxy from the environment.
            None | Some(Proxy(None)) => http.no_proxy(),
            Some(Proxy(Some(Ok(proxy)))) => http.proxy(proxy.clone()),
            Some(Proxy(Some(Err(problem)))) => return Err(Error::config("proxy", *problem)),
        };
        let http = tls(http, base, self.tls.as_ref().unwrap_or(&Tls::new()))?;
        let http = http
            .build()
            .map_err(|error| unusable("HTTP client", &error))?;
        Ok(Builtin::new(http, connect_timeout))
    }
}

/// Returns the error of a setting with its cause, because reqwest's own message is only "builder
/// error".
fn unusable(setting: &str, error: &reqwest::Error) -> Error {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    Error::config(setting, cause.unwrap_or_else(|| error.to_string()))
}

#[cfg(any(
    feature = "rustls",
    feature = "rustls-no-provider",
    feature = "native-tls"
))]
fn tls(
    http: reqwest::ClientBuilder,
    base: &BaseUrl,
    tls: &Tls,
) -> Result<reqwest::ClientBuilder, Error> {
    let backend = tls.backend.unwrap_or(COMPILED_IN[0]);
    let (mut http, identity): (_, ParseIdentity) = match backend {
        #[cfg(feature = "rustls")]
        TlsBackend::Rustls => (http.tls_backend_rustls(), reqwest::Identity::from_pem),
        #[cfg(feature = "rustls-no-provider")]
        TlsBackend::Installed if rustls::crypto::CryptoProvider::get_default().is_none() => {
            let problem = "no crypto provider for rustls is installed; install one before the \
                           client is built, for example with \
                           `rustls::crypto::ring::default_provider().install_default()`, or enable \
                           the feature `rustls` of petstore-client";
            return Err(Error::config("TLS backend", problem));
        }
        #[cfg(feature = "rustls-no-provider")]
        TlsBackend::Installed => (http.tls_backend_rustls(), reqwest::Identity::from_pem),
        #[cfg(feature = "native-tls")]
        TlsBackend::Native => (http.tls_backend_native(), |pem| {
            reqwest::Identity::from_pkcs8_pem(pem, pem)
        }),
    };
    if base.is_plain() {
        // Loading the system's certificates takes longer than a whole request on loopback.
        return Ok(http.tls_certs_only(std::iter::empty()));
    }
    let pem = tls.roots.as_deref().unwrap_or_default();
    let roots = reqwest::Certificate::from_pem_bundle(pem)
        .map_err(|error| unusable("root certificates", &error))?;
    if roots.is_empty() && (tls.roots.is_some() || tls.only_roots) {
        return Err(Error::config(
            "root certificates",
            "no PEM certificate was found",
        ));
    }
    if let Some(pem) = &tls.identity {
        let identity = identity(pem);
        http = http.identity(identity.map_err(|error| unusable("client certificate", &error))?);
    }
    Ok(if tls.only_roots {
        http.tls_certs_only(roots)
    } else {
        http.tls_certs_merge(roots)
    })
}

#[cfg(not(any(
    feature = "rustls",
    feature = "rustls-no-provider",
    feature = "native-tls"
)))]
fn tls(
    http: reqwest::ClientBuilder,
    base: &BaseUrl,
    _: &Tls,
) -> Result<reqwest::ClientBuilder, Error> {
    if base.is_plain() {
        return Ok(http);
    }
    let problem = "it is https, and this program was built without TLS; \
                   enable a TLS feature of petstore-client, such as `rustls`";
    Err(Error::config("base URL", problem))
}

/// Reads a client certificate and its private key.
#[cfg(any(
    feature = "rustls",
    feature = "rustls-no-provider",
    feature = "native-tls"
))]
type ParseIdentity = fn(&[u8]) -> reqwest::Result<reqwest::Identity>;

/// The available backends, the default first.
#[cfg(any(
    feature = "rustls",
    feature = "rustls-no-provider",
    feature = "native-tls"
))]
const COMPILED_IN: &[TlsBackend] = &[
    // `native-tls` is a deliberate choice, which the default features of another dependency must
    // not change.
    #[cfg(feature = "native-tls")]
    TlsBackend::Native,
    #[cfg(feature = "rustls")]
    TlsBackend::Rustls,
    #[cfg(feature = "rustls-no-provider")]
    TlsBackend::Installed,
];
