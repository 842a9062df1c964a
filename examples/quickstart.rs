//! Adds a pet and lists those that can be bought, against a mock server of its own.
//!
//! `cargo run --example quickstart`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use petstore_client::{Client, NewPet, PetStatus};
use petstore_mock::MockServer;

#[tokio::main]
async fn main() -> Result<(), petstore_client::Error> {
    let server = MockServer::start().await;
    let base_url = server.url();

    let client = Client::builder(base_url).api_key("free-key").build()?;

    let rex = NewPet::new("Rex", 7).with_status(PetStatus::Pending);
    let rex = client.pets().create(&rex).await?;
    println!("{} has the number {}", rex.name, rex.id);

    let page = client.pets().list().limit(50).status(PetStatus::Available).send().await?;
    for pet in page.iter() {
        println!("{:>3}  {}", pet.id, pet.name);
    }
    if let Some(quota) = page.meta().quota() {
        println!("{} of {} requests left", quota.remaining, quota.limit);
    }
    Ok(())
}
