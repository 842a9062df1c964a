//! Tests code against the mock server, with its quotas and the removal in 2030. The test does not
//! wait in real time.
//!
//! `cargo run -p petstore-examples --example testing`
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::time::{Duration, SystemTime};

use petstore_client::{Client, Error, ErrorKind, RequestOptions};
use petstore_mock::{Clock, MockServer, Plan, Seed, SeedPet};

/// The code under test: returns the name of a pet, or `None` if there is no such pet.
async fn name_of(client: &Client, id: i64) -> Result<Option<String>, Error> {
    #[expect(deprecated, reason = "the code under test still uses it")]
    match client.pets().get(id).await {
        Ok(pet) => Ok(Some(pet.name)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MockServer::builder()
        .key("test-key", Plan::Free)
        .key("another-key", Plan::Free)
        .seed(Seed::none().pet(SeedPet::new("Rex", 7)))
        .clock(Clock::frozen(
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
        ))
        .start()
        .await?;
    let client = Client::builder(server.url())
        .api_key("test-key")
        .options(&RequestOptions::new().max_wait(Duration::ZERO))
        .build()?;

    assert_eq!(name_of(&client, 1).await?, Some("Rex".to_owned()));
    assert_eq!(name_of(&client, 2).await?, None);

    // The plan allows 60 requests a minute. The client does not send the 61st, and says when to retry.
    for _ in 2..60 {
        name_of(&client, 1).await?;
    }
    let refused = name_of(&client, 1)
        .await
        .expect_err("the 61st request of a minute");
    assert!(refused.is_rate_limited());
    println!("{refused}");

    // In 2031 the operation is removed. This client uses another key: the first one is still rate
    // limited, because the client measures time by this machine's clock.
    server
        .clock()
        .advance(Duration::from_secs(4 * 366 * 86_400));
    let client = Client::builder(server.url())
        .api_key("another-key")
        .build()?;
    let gone = name_of(&client, 1)
        .await
        .expect_err("the operation has been removed");
    assert_eq!(gone.kind(), ErrorKind::Gone);
    println!("{gone}");
    Ok(())
}
