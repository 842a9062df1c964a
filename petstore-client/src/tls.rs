//! Fits the HTTP client with what the base URL's scheme needs, and with nothing else.

use crate::base_url::BaseUrl;
use crate::error::Error;

/// Prepares TLS for a base URL.
///
/// For plain http the system's certificates are not read: that takes longer than a whole request
/// on loopback.
pub(crate) fn prepare(
    http: reqwest::ClientBuilder,
    base: &BaseUrl,
) -> Result<reqwest::ClientBuilder, Error> {
    provide()?;
    if base.is_plain() {
        return Ok(without_certificates(http));
    }
    if cfg!(any(feature = "rustls-no-provider", feature = "aws-lc-rs", feature = "native-tls")) {
        return Ok(http);
    }
    Err(Error::config(
        "base URL",
        "it is https, and this program was built without TLS; \
         enable a TLS feature of petstore-client, such as `rustls`",
    ))
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
