//! Creates a pet, and lists two available pets, with a mock server.
//!
//! `cargo run -p petstore-examples --example quickstart`
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use petstore_client::{Client, NewPet, PetStatus};
use petstore_mock::MockServer;

#[tokio::main]
async fn main() -> Result<(), petstore_client::Error> {
    let server = MockServer::start().await;
    let base_url = server.url();

    let client = Client::builder(base_url).api_key("free-key").build()?;

    let new = NewPet::new("Rex", 7).with_status(PetStatus::Pending);
    let rex = client.pets().create(&new).await?;
    println!("created {} with id {}", rex.name, rex.id);

    let page = client
        .pets()
        .list()
        .status(PetStatus::Available)
        .limit(2)
        .await?;
    for pet in page {
        println!("{} {}", pet.id, pet.name);
    }
    Ok(())
}
