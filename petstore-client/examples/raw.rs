//! Sends raw requests, for operations that have no typed method: decoded, paged, and built without sending.
//!
//! `cargo run -p petstore-client --example raw`
//!
//! In a program of your own: `cargo add serde_json`.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use petstore_client::{Client, Method, Pet};
use petstore_mock::{MockServer, Plan};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MockServer::builder()
        .key("key", Plan::Business)
        .start()
        .await?;
    let client = Client::new(server.url(), "key")?;

    let mut pages = client
        .request(Method::GET, "/pets")
        .query("limit", 5)
        .pages();
    while let Some(page) = pages.try_next().await? {
        let pets: Vec<Pet> = page.json()?;
        println!("{} pets", pets.len());
    }

    let orders = client
        .request(Method::GET, "/store/orders")
        .decode::<Value>()
        .await?;
    println!("orders: {orders}");

    let dry = client
        .request(Method::PATCH, "/pets/1")
        .json(&json!({"name": "Max"}))
        .build()?;
    println!("{} {} {:?}", dry.method(), dry.uri(), dry.headers());
    if let Err(error) = client.execute(dry).await {
        println!("{error}");
    }
    Ok(())
}
