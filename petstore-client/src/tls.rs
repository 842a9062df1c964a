//! Fits the HTTP client with what the base URL's scheme needs, and with nothing else.

use crate::base_url::BaseUrl;
use crate::error::Error;

/// Prepares TLS for a base URL.
///
/// For plain http the system's certificates are not read: that takes longer than a whole request
/// on loopback. For https these authorities are trusted beside the system's.
pub(crate) fn prepare(
    http: reqwest::ClientBuilder,
    base: &BaseUrl,
    authorities: Option<&[u8]>,
) -> Result<reqwest::ClientBuilder, Error> {
    provide()?;
    if base.is_plain() {
        return Ok(without_certificates(http));
    }
    if cfg!(any(feature = "rustls-no-provider", feature = "aws-lc-rs", feature = "native-tls")) {
        return match authorities {
            Some(pem) => with_authorities(http, pem),
            None => Ok(http),
        };
    }
    Err(Error::config(
        "base URL",
        "it is https, and this program was built without TLS; \
         enable a TLS feature of petstore-client, such as `rustls`",
    ))
}

#[cfg(any(feature = "rustls-no-provider", feature = "aws-lc-rs", feature = "native-tls"))]
fn with_authorities(
    http: reqwest::ClientBuilder,
    pem: &[u8],
) -> Result<reqwest::ClientBuilder, Error> {
    let problem = |problem: String| Error::config("certificate authorities", problem);
    let all =
        reqwest::Certificate::from_pem_bundle(pem).map_err(|error| problem(error.to_string()))?;
    if all.is_empty() {
        return Err(problem("there is no certificate in PEM".to_owned()));
    }
    Ok(http.tls_certs_merge(all))
}

#[cfg(not(any(feature = "rustls-no-provider", feature = "aws-lc-rs", feature = "native-tls")))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature with and without TLS")]
fn with_authorities(
    http: reqwest::ClientBuilder,
    _: &[u8],
) -> Result<reqwest::ClientBuilder, Error> {
    Ok(http)
}

#[cfg(any(feature = "rustls-no-provider", feature = "aws-lc-rs"))]
fn without_certificates(http: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    http.tls_certs_only(std::iter::empty())
}

#[cfg(not(any(feature = "rustls-no-provider", feature = "aws-lc-rs")))]
fn without_certificates(http: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    http
}

/// Makes sure that rustls has its cryptography: the program's own choice if it made one, else the
/// one that this crate's features name. reqwest brings one along only with `aws-lc-rs`, and panics
/// where there is none.
#[cfg(all(feature = "rustls-no-provider", not(feature = "aws-lc-rs")))]
fn provide() -> Result<(), Error> {
    if rustls::crypto::CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    #[cfg(feature = "rustls")]
    {
        // Where another thread was quicker, its provider serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(())
    }
    #[cfg(not(feature = "rustls"))]
    Err(Error::config(
        "TLS",
        "no rustls crypto provider is installed; install one before building the client, \
         or enable the feature `rustls` or `aws-lc-rs` of petstore-client",
    ))
}

#[cfg(not(all(feature = "rustls-no-provider", not(feature = "aws-lc-rs"))))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature with and without rustls")]
fn provide() -> Result<(), Error> {
    Ok(())
}
