//! Reads a whole list, by page and by pet.
//!
//! `cargo run -p petstore-examples --example paging`
//!
//! In a program of your own: `cargo add futures-util`.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use futures_util::TryStreamExt as _;
use petstore_client::Client;
use petstore_mock::MockServer;

#[tokio::main]
async fn main() -> Result<(), petstore_client::Error> {
    let server = MockServer::start().await;
    let client = Client::builder(server.url()).api_key("free-key").build()?;

    let mut pages = client.pets().list().limit(10).pages();
    while let Some(page) = pages.try_next().await? {
        let then = match page.has_more() {
            Some(true) => "more pages follow",
            Some(false) => "last page",
            None => "the service does not say how to get more",
        };
        println!("page of {} pets: {then}", page.len());
    }

    let names: Vec<String> = client
        .pets()
        .list()
        .items()
        .map_ok(|pet| pet.name)
        .try_collect()
        .await?;
    println!("{} pets: {}", names.len(), names.join(", "));
    Ok(())
}
