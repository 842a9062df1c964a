//! Sends raw requests, for operations that have no typed method: decoded, as bytes, and built without sending.
//!
//! `cargo run -p petstore-client --example raw`
//!
//! In a program of your own: `cargo add serde_json`.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use petstore_client::http::Method;
use petstore_client::{Client, Pet};
use petstore_mock::{MockServer, Plan};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = MockServer::builder()
        .key("key", Plan::Business)
        .start()
        .await?;
    let client = Client::new(server.url(), "key")?;

    let pets = client
        .request(Method::GET, "/pets")
        .query("limit", 5)
        .decode::<Vec<Pet>>()
        .await?;
    println!("{} pets", pets.len());

    let orders = client.request(Method::GET, "/store/orders").await?;
    println!("HTTP {}: {}", orders.status(), orders.text());

    let dry = client
        .request(Method::PATCH, "/pets/1")
        .json(&json!({"name": "Max"}))
        .build()?;
    println!("{} {} {:?}", dry.method(), dry.uri(), dry.headers());
    Ok(())
}
