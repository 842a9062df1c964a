//! Configures TLS, time limits and retries, and then replaces the built-in HTTP client.
//!
//! `cargo run -p petstore-client --example network`
//!
//! In a program of your own: `cargo add http reqwest`.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::time::Duration;

use petstore_client::bytes::Bytes;
use petstore_client::retry::{Backoff, RetryAdvice, RetryBudget, RetryPolicy};
use petstore_client::transport::{Connection, Proxy, Tls, TransportError, transport_fn};
use petstore_client::{Client, RequestOptions};
use petstore_mock::MockServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MockServer::builder().tls().start().await?;
    let authority = server.ca_certificate().unwrap_or_default();
    let tls = Tls::new()
        .root_certificates(authority)
        .only_root_certificates(true);
    let connection = Connection::new()
        .connect_timeout(Duration::from_secs(3))
        .proxy(Proxy::all("http://proxy.internal:3128").basic_auth("kennel", "pw"))
        .tls(tls);
    let backoff = Backoff::new()
        .initial(Duration::from_millis(100))
        .max(Duration::from_secs(5));
    let retry = RetryPolicy::new()
        .attempts(6)
        .backoff(backoff)
        .budget(RetryBudget::new().ratio(0.1))
        .classifier(|attempt| match attempt.error.code() {
            Some("reindexing") => RetryAdvice::Retry,
            _ => RetryAdvice::Default,
        });
    let client = Client::builder(server.url())
        .api_key("business-key")
        .user_agent("kennel/2.1")
        .options(&RequestOptions::new().read_timeout(Duration::from_secs(5)))
        .connection(connection)
        .retry(retry)
        .build()?;
    println!(
        "{} pets with the built-in transport",
        client.pets().list().await?.len()
    );

    let roots = [reqwest::Certificate::from_pem(authority.as_bytes())?];
    let http = reqwest::Client::builder().tls_certs_merge(roots).build()?;
    let custom = transport_fn(move |request| send(http.clone(), request));
    let client = Client::builder(server.url())
        .api_key("business-key")
        .transport(custom)
        .build()?;
    println!(
        "{} pets with a custom transport",
        client.pets().list().await?.len()
    );
    Ok(())
}

async fn send(
    http: reqwest::Client,
    request: http::Request<Bytes>,
) -> Result<http::Response<Bytes>, TransportError> {
    let request = reqwest::Request::try_from(request).map_err(TransportError::connect)?;
    let response = http
        .execute(request)
        .await
        .map_err(|error| match error.is_connect() {
            true => TransportError::connect(error),
            false => TransportError::interrupted(error),
        })?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response
        .bytes()
        .await
        .map_err(TransportError::interrupted)?;
    let mut complete = http::Response::new(body);
    (*complete.status_mut(), *complete.headers_mut()) = (status, headers);
    Ok(complete)
}
