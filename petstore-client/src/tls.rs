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
    if cfg!(any(feature = "rustls-no-provider", feature = "native-tls")) {
        return Ok(http);
    }
    Err(Error::config(
        "base URL",
        "it is https, and this program was built without TLS; \
         enable a TLS feature of petstore-client, such as `rustls`",
    ))
}

#[cfg(feature = "rustls-no-provider")]
fn without_certificates(http: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    http.tls_certs_only(std::iter::empty())
}

#[cfg(not(feature = "rustls-no-provider"))]
fn without_certificates(http: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    http
}

/// Makes sure that rustls has its cryptography: the program's own choice if it made one, else the
/// one that this crate's features name. reqwest panics where there is none.
#[cfg(feature = "rustls-no-provider")]
fn provide() -> Result<(), Error> {
    use rustls::crypto::CryptoProvider;

    if CryptoProvider::get_default().is_some() {
        return Ok(());
    }
    #[cfg(feature = "aws-lc-rs")]
    let chosen = Some(rustls::crypto::aws_lc_rs::default_provider());
    #[cfg(all(feature = "rustls", not(feature = "aws-lc-rs")))]
    let chosen = Some(rustls::crypto::ring::default_provider());
    #[cfg(not(any(feature = "rustls", feature = "aws-lc-rs")))]
    let chosen: Option<CryptoProvider> = None;
    match chosen {
        // Where another thread was quicker, its provider serves as well.
        Some(provider) => {
            let _ = provider.install_default();
            Ok(())
        }
        None => Err(Error::config(
            "TLS",
            "no rustls crypto provider is installed; install one before building the client, \
             or enable the feature `rustls` or `aws-lc-rs` of petstore-client",
        )),
    }
}

#[cfg(not(feature = "rustls-no-provider"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature with and without rustls")]
fn provide() -> Result<(), Error> {
    Ok(())
}
