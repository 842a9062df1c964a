//! A program with another crate that requires ring to be the only provider of rustls. The client's
//! feature `rustls` adds aws-lc-rs. The line in the README makes ring the default provider.
#![allow(clippy::disallowed_methods, reason = "a program reads its environment")]

use petstore_client::transport::Connection;
use petstore_client::{Client, ClientBuilder};

/// Does what the other crate does.
fn another_crate() {
    drop(rustls::ClientConfig::builder());
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // Its message would look like a failure of this program.
    std::panic::set_hook(Box::new(|_| {}));
    let alone = std::panic::catch_unwind(another_crate);
    drop(std::panic::take_hook());
    assert!(
        alone.is_err(),
        "two providers: without the line, rustls panics"
    );

    let _ = rustls::crypto::ring::default_provider().install_default();

    another_crate();
    let authority =
        std::env::var("PETSTORE_CA_FILE").expect("the variables of `petstore-mock exec`");
    let authority = std::fs::read(authority).expect("a readable file");
    let client = ClientBuilder::from_env().expect("the variables");
    let client: Client = client
        .connection(Connection::new().roots(authority))
        .build()
        .expect("a client");
    assert_eq!(client.pets().list().await.expect("20 pets").len(), 20);
}
