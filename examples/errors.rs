//! Causes four failures, and handles each by its kind.
//!
//! `cargo run -p petstore-examples --example errors`
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::time::Duration;

use petstore_client::http::Method;
use petstore_client::{Client, Error, ErrorKind, NewPet, RequestOptions};
use petstore_mock::{MockServer, Plan};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MockServer::builder()
        .key("two-a-minute", Plan::enterprise(2, 100))
        .start()
        .await?;
    let client = |key: &str| Client::builder(server.url()).api_key(key).build();

    explain(client("mistyped")?.store().orders().await);

    let client = client("two-a-minute")?;
    explain(client.pets().list().limit(0).send().await);
    explain(client.request(Method::GET, "/pets/999").send().await);

    // This is the second request of the minute. The next one would have to wait.
    client.pets().create(&NewPet::new("Rex", 7)).await?;
    let no_wait = RequestOptions::new().max_wait(Duration::ZERO);
    explain(
        client
            .pets()
            .create(&NewPet::new("Max", 7))
            .options(&no_wait)
            .await,
    );
    Ok(())
}

fn explain<T>(result: Result<T, Error>) {
    let Err(error) = result else { return };
    let kind = match error.kind() {
        ErrorKind::Unauthorized | ErrorKind::Credentials => "API key",
        ErrorKind::InvalidRequest | ErrorKind::Rejected => "request",
        ErrorKind::NotFound => "not found",
        ErrorKind::RateLimited => "rate limited",
        _ => "other",
    };
    println!("{kind}: {error}");
    println!(
        "    attempts: {}, may have been processed: {}, retry after: {:?}",
        error.attempts(),
        error.may_have_been_processed(),
        error.retry_after(),
    );
}
