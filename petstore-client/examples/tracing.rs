//! Prints the client's spans and logs, and counts bytes from its events.
//!
//! `cargo run -p petstore-client --example tracing`
//!
//! In a program of your own: `cargo add tracing tracing-subscriber`.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use petstore_client::events::EventKind;
use petstore_client::{Client, NewPet};
use petstore_mock::{MockServer, Plan};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .init();
    let server = MockServer::builder()
        .key("key", Plan::Business)
        .start()
        .await?;
    let bytes = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&bytes);
    let client = Client::builder(server.url())
        .api_key("key")
        .on_event(move |event| {
            if let EventKind::Answered { body, .. } = event.kind {
                count.fetch_add(body.len() as u64, Ordering::Relaxed);
            }
        })
        .build()?;
    client.pets().create(&NewPet::new("Rex", 7)).await?;
    let page = client.pets().list().await?;
    println!(
        "{} pets in {} bytes",
        page.len(),
        bytes.load(Ordering::Relaxed)
    );
    Ok(())
}
