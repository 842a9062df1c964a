//! Creates 100 pets, 16 at a time. The client keeps within the quotas, so no request is refused.
//!
//! `cargo run -p petstore-client --example concurrent`
//!
//! In a program of your own: `cargo add futures-util`.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use futures_util::{StreamExt as _, stream};
use petstore_client::{Client, NewPet};
use petstore_mock::{MockServer, Plan};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MockServer::builder()
        .key("key", Plan::Business)
        .start()
        .await?;
    let client = Client::new(server.url(), "key")?;
    let new: Vec<_> = (1..=100)
        .map(|number| NewPet::new(format!("Pet {number}"), 7))
        .collect();

    let calls = stream::iter(&new).map(|pet| client.pets().create(pet).send());
    let mut calls = calls.buffer_unordered(16);
    let mut added = 0;
    while let Some(result) = calls.next().await {
        result?;
        added += 1;
        if added % 25 == 0 {
            // Awaiting another call here does not delay the 16 calls in flight.
            println!(
                "created {added} pets; {} on the first page",
                client.pets().list().await?.len()
            );
        }
    }

    // A call owns its data, so it can be spawned and joined.
    let spawned = tokio::spawn(client.pets().create(&new[0]).send());
    let (page, orders) =
        tokio::try_join!(client.pets().list().send(), client.store().orders().send())?;
    println!(
        "{} pets, {} orders",
        page.len(),
        orders.as_array().map_or(0, Vec::len)
    );
    println!("{} has id {}", new[0].name, spawned.await??.id);
    assert_eq!(client.limits().snapshot().throttled, 0);
    Ok(())
}
