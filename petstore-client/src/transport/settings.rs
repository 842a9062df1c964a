//! The settings of the built-in transport, and the HTTP client that they make.

use std::fmt;
use std::time::Duration;

use crate::error::Error;
use crate::http::base_url::BaseUrl;

/// How TLS is done.
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
    /// A client certificate, and how it is presented: programs without one have no code for that.
    identity: Option<(Vec<u8>, PresentIdentity)>,
}

/// Takes the certificate, and whether the system's library is used.
type PresentIdentity =
    fn(reqwest::ClientBuilder, &[u8], bool) -> reqwest::Result<reqwest::ClientBuilder>;

/// A TLS library, of those that were compiled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsBackend {
    /// rustls with the provider that the program installed, or else aws-lc-rs.
    #[cfg(feature = "rustls")]
    Rustls,
    /// rustls with the crypto provider that the program installed. Where there is none, the client
    /// cannot be built.
    #[cfg(feature = "rustls-no-provider")]
    Installed,
    /// The system's library.
    #[cfg(feature = "native-tls")]
    Native,
}

impl Tls {
    /// Creates the default: the first backend compiled in, in the order of [`TlsBackend`], and the
    /// system's certificates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses the library.
    pub fn backend(mut self, backend: TlsBackend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Trusts certificate authorities, as PEM, beside the system's: a company's own, or that of a
    /// mock. It may be called again. They matter for https only.
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        let roots = self.roots.get_or_insert_default();
        roots.extend_from_slice(pem.as_ref());
        roots.push(b'\n');
        self
    }

    /// Sets whether only the certificates given are trusted, and not the system's.
    pub fn only_root_certificates(mut self, only: bool) -> Self {
        self.only_roots = only;
        self
    }

    /// Presents a client certificate: its chain and its private key (PKCS #8), as PEM.
    pub fn client_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.identity = Some((pem.into(), present_identity));
        self
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("backend", &self.backend).finish_non_exhaustive()
    }
}

/// Which proxy the built-in transport uses. A service on this machine is never asked through one.
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
    /// Sends everything through one proxy, such as `http://proxy.internal:3128`.
    pub fn all(url: impl AsRef<str>) -> Self {
        // The message of the parser may hold a password.
        Self(Some(reqwest::Proxy::all(url.as_ref()).map_err(|_| "its URL is not valid")))
    }

    /// Uses no proxy, whatever the system's settings say.
    pub fn none() -> Self {
        Self(None)
    }

    /// Sets the user and password for the proxy.
    pub fn basic_auth(self, user: &str, password: &str) -> Self {
        Self(self.0.map(|proxy| proxy.map(|proxy| proxy.basic_auth(user, password))))
    }

    /// Sets the hosts that are reached directly, in the form of `NO_PROXY`: `.internal,10.0.0.0/8`.
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

/// What a builder sets of the built-in transport.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) pool_idle_timeout: Option<Duration>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) tls: Option<Tls>,
}

impl Connection {
    pub(crate) fn connect_timeout(&self) -> Duration {
        self.connect_timeout.unwrap_or(Duration::from_secs(10))
    }

    /// Returns the name of a setting that is set, if one is.
    pub(crate) fn any(&self) -> Option<&'static str> {
        let set = [
            ("time limit for connecting", self.connect_timeout.is_some()),
            ("idle time of connections", self.pool_idle_timeout.is_some()),
            ("proxy", self.proxy.is_some()),
            ("TLS setting", self.tls.is_some()),
        ];
        set.into_iter().find_map(|(name, is_set)| is_set.then_some(name))
    }

    /// Builds the HTTP client for a base URL. Redirects, retries and `Referer` of its own are off:
    /// they would send the key elsewhere or escape the accounting.
    pub(crate) fn client(&self, base: &BaseUrl) -> Result<reqwest::Client, Error> {
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(self.connect_timeout())
            .pool_idle_timeout(self.pool_idle_timeout.unwrap_or(Duration::from_secs(90)));
        http = match &self.proxy {
            // A proxy could not reach this machine's loopback, and would see the key.
            _ if base.is_loopback() => http.no_proxy(),
            None => http,
            Some(Proxy(None)) => http.no_proxy(),
            Some(Proxy(Some(Ok(proxy)))) => http.proxy(proxy.clone()),
            Some(Proxy(Some(Err(problem)))) => return Err(Error::config("proxy", *problem)),
        };
        let http = tls(http, base, self.tls.as_ref().unwrap_or(&Tls::new()))?;
        http.build().map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            Error::config("HTTP client", cause.unwrap_or_else(|| error.to_string()))
        })
    }
}

#[cfg(any(feature = "rustls", feature = "rustls-no-provider", feature = "native-tls"))]
fn tls(
    http: reqwest::ClientBuilder,
    base: &BaseUrl,
    tls: &Tls,
) -> Result<reqwest::ClientBuilder, Error> {
    let (http, is_native) = backend(http, tls.backend)?;
    if base.is_plain() && !is_native {
        // The system's certificates are not read: that takes longer than a whole request on loopback.
        return Ok(http.tls_certs_only(std::iter::empty()));
    }
    let problem = |setting, error: reqwest::Error| Error::config(setting, error.to_string());
    let roots = match &tls.roots {
        Some(pem) => reqwest::Certificate::from_pem_bundle(pem)
            .map_err(|error| problem("root certificates", error))?,
        None => Vec::new(),
    };
    if roots.is_empty() && (tls.roots.is_some() || tls.only_roots) {
        return Err(Error::config("root certificates", "there is no certificate in PEM"));
    }
    let http = match &tls.identity {
        Some((pem, present)) => {
            present(http, pem, is_native).map_err(|error| problem("client certificate", error))?
        }
        None => http,
    };
    Ok(if tls.only_roots { http.tls_certs_only(roots) } else { http.tls_certs_merge(roots) })
}

#[cfg(not(any(feature = "rustls", feature = "rustls-no-provider", feature = "native-tls")))]
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

/// Chooses the library. Returns whether it is the system's.
#[cfg(any(feature = "rustls", feature = "rustls-no-provider", feature = "native-tls"))]
fn backend(
    http: reqwest::ClientBuilder,
    backend: Option<TlsBackend>,
) -> Result<(reqwest::ClientBuilder, bool), Error> {
    let compiled_in = [
        #[cfg(feature = "rustls")]
        TlsBackend::Rustls,
        #[cfg(feature = "rustls-no-provider")]
        TlsBackend::Installed,
        #[cfg(feature = "native-tls")]
        TlsBackend::Native,
    ];
    match backend.unwrap_or(compiled_in[0]) {
        #[cfg(feature = "rustls")]
        TlsBackend::Rustls => Ok((http.tls_backend_rustls(), false)),
        #[cfg(feature = "rustls-no-provider")]
        TlsBackend::Installed if rustls::crypto::CryptoProvider::get_default().is_some() => {
            Ok((http.tls_backend_rustls(), false))
        }
        #[cfg(feature = "rustls-no-provider")]
        TlsBackend::Installed => {
            let problem = "no crypto provider for rustls is installed; install one before the \
                           client is built, or enable the feature `rustls` of petstore-client";
            Err(Error::config("TLS backend", problem))
        }
        #[cfg(feature = "native-tls")]
        TlsBackend::Native => Ok((http.tls_backend_native(), true)),
    }
}

#[cfg(any(feature = "rustls", feature = "rustls-no-provider"))]
fn present_identity(
    http: reqwest::ClientBuilder,
    pem: &[u8],
    is_native: bool,
) -> reqwest::Result<reqwest::ClientBuilder> {
    #[cfg(feature = "native-tls")]
    if is_native {
        return Ok(http.identity(reqwest::Identity::from_pkcs8_pem(pem, pem)?));
    }
    let _ = is_native;
    Ok(http.identity(reqwest::Identity::from_pem(pem)?))
}

#[cfg(not(any(feature = "rustls", feature = "rustls-no-provider")))]
fn present_identity(
    http: reqwest::ClientBuilder,
    pem: &[u8],
    _: bool,
) -> reqwest::Result<reqwest::ClientBuilder> {
    #[cfg(feature = "native-tls")]
    let http = http.identity(reqwest::Identity::from_pkcs8_pem(pem, pem)?);
    let _ = pem;
    Ok(http)
}
