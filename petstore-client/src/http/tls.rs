//! Fits the HTTP client with what the base URL's scheme needs, and with nothing else.

use super::base_url::BaseUrl;

/// A setting that cannot be used, and why.
type Problem = (&'static str, String);

/// Configures TLS for a base URL.
///
/// For plain http the system's certificates are not read: that takes longer than a whole request
/// on loopback. For https these roots are trusted beside the system's.
pub(crate) fn configure(
    http: reqwest::ClientBuilder,
    base: &BaseUrl,
    roots: Option<&[u8]>,
) -> Result<reqwest::ClientBuilder, Problem> {
    install_provider()?;
    if base.is_plain() {
        return Ok(without_certificates(http));
    }
    if cfg!(any(feature = "rustls-no-provider", feature = "aws-lc-rs", feature = "native-tls")) {
        return match roots {
            Some(pem) => with_roots(http, pem),
            None => Ok(http),
        };
    }
    let problem = "it is https, and this program was built without TLS; \
                   enable a TLS feature of petstore-client, such as `rustls`";
    Err(("base URL", problem.to_owned()))
}

#[cfg(any(feature = "rustls-no-provider", feature = "aws-lc-rs", feature = "native-tls"))]
fn with_roots(http: reqwest::ClientBuilder, pem: &[u8]) -> Result<reqwest::ClientBuilder, Problem> {
    let problem = |problem: String| ("root certificates", problem);
    let all =
        reqwest::Certificate::from_pem_bundle(pem).map_err(|error| problem(error.to_string()))?;
    if all.is_empty() {
        return Err(problem("there is no certificate in PEM".to_owned()));
    }
    Ok(http.tls_certs_merge(all))
}

#[cfg(not(any(feature = "rustls-no-provider", feature = "aws-lc-rs", feature = "native-tls")))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature with and without TLS")]
fn with_roots(http: reqwest::ClientBuilder, _: &[u8]) -> Result<reqwest::ClientBuilder, Problem> {
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
pub(crate) fn install_provider() -> Result<(), Problem> {
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
    Err((
        "TLS",
        "no rustls crypto provider is installed; install one before building the client, \
         or enable the feature `rustls` or `aws-lc-rs` of petstore-client"
            .to_owned(),
    ))
}

#[cfg(not(all(feature = "rustls-no-provider", not(feature = "aws-lc-rs"))))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature with and without rustls")]
pub(crate) fn install_provider() -> Result<(), Problem> {
    Ok(())
}
