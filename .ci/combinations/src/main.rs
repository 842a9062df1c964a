//! Checks what a client does with the TLS library that this program was built with, against the mock
//! server in `PETSTORE_BASE_URL`, whose authority is in `PETSTORE_CA_FILE`.
#![allow(clippy::disallowed_methods, reason = "a program reads its environment")]

use petstore_client::transport::{Connection, Tls};
use petstore_client::{Client, ClientBuilder, Error, ErrorKind, RequestOptions};

fn builder() -> ClientBuilder {
    ClientBuilder::from_env().expect("the variables of `petstore-mock exec`")
}

fn trusting() -> Result<Client, Error> {
    let authority =
        std::env::var("PETSTORE_CA_FILE").expect("the variables of `petstore-mock exec`");
    let authority = std::fs::read(authority).expect("a readable file");
    builder()
        .connection(Connection::new().roots(authority))
        .build()
}

async fn list(client: &Client) -> Result<usize, Error> {
    let once = RequestOptions::new().max_attempts(1);
    Ok(client.pets().list().options(&once).await?.len())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if cfg!(not(any(
        feature = "rustls",
        feature = "rustls-no-provider",
        feature = "native-tls"
    ))) {
        let error = trusting().expect_err("https without TLS");
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.to_string().contains("built without TLS"), "{error}");
        return;
    }

    #[cfg(feature = "rustls-no-provider")]
    {
        let is_alone = cfg!(not(any(feature = "rustls", feature = "native-tls")));
        if is_alone {
            let error = trusting().expect_err("no provider is installed");
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            assert!(error.to_string().contains("install"), "{error}");
        }
        let installed = rustls::crypto::ring::default_provider().install_default();
        assert!(installed.is_ok());
    }

    let client = trusting().expect("a client");
    assert_eq!(list(&client).await.expect("20 pets"), 20);

    let stranger = builder()
        .connection(Connection::new().tls(only_another_authority()))
        .build()
        .expect("a client");
    let error = list(&stranger).await.expect_err("an unknown authority");
    assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
    // native-tls words this failure differently, so the text shows which library is in use.
    let has_our_words = error.problem().contains("from an unknown authority");
    assert_eq!(has_our_words, !cfg!(feature = "native-tls"), "{error}");
    assert!(error.is_connect() && !error.may_have_been_processed());
}

/// Trusts an authority that signed nothing here.
fn only_another_authority() -> Tls {
    let authority = include_bytes!("../another_authority.pem");
    Tls::new()
        .root_certificates(authority)
        .only_root_certificates(true)
}
