//! What a newcomer writes compiles.

use futures_util::future::join_all;
use petstore_client::{Client, NewPet, Pet, PetStatus, Result};
use petstore_mock::{MockServer, Plan, Seed, SeedPet};

use super::kit::{key, mock};

/// A service with one pet, Rex.
async fn service() -> (MockServer, Client) {
    let rex = SeedPet::new("Rex", 7).with_status(petstore_mock::PetStatus::Sold);
    let builder = mock(key(), Plan::Pro).seed(Seed::none().pet(rex));
    let server = builder.start().await.unwrap();
    let client = Client::new(server.url(), key()).unwrap();
    (server, client)
}

async fn adopt(client: &Client, name: &str) -> petstore_client::Result<Pet> {
    client.pets().create(&NewPet::new(name, 7)).await
}

#[tokio::test]
async fn an_awaited_value_is_used_at_once() -> Result<()> {
    let (_server, client) = service().await;
    let mut pets = client.pets().list().await?.into_iter();
    assert_eq!(pets.next().unwrap().name, "Rex");
    for pet in &client.pets().list().await? {
        assert_eq!(pet.name, "Rex");
    }
    // As in `axum::Json(call.await?)`.
    let page = serde_json::to_string(&client.pets().list().await?).unwrap();
    let rex = r#"{"id":1,"name":"Rex","categoryId":7,"status":"sold"}"#;
    assert_eq!(page, format!("[{rex}]"));
    let orders = serde_json::to_string(&client.store().orders().await?).unwrap();
    assert_eq!(orders, "[]");
    assert_eq!(adopt(&client, "Miez").await?.id, 2);
    let tom = NewPet::new("Tom", 7).with_status("sold");
    assert_eq!(client.pets().create(&tom).await?.name, "Tom");
    let sold = client.pets().list().status("sold").await?;
    assert_eq!(sold.len(), 2);
    assert_eq!(sold[1].status, Some(PetStatus::Sold));
    Ok(())
}

#[tokio::test]
async fn the_metadata_of_a_response() -> Result<()> {
    let (_server, client) = service().await;
    let response = client.pets().list().with_meta().await?;
    assert_eq!(response.value[0].name, "Rex");
    assert_eq!(response.meta.status(), 200);
    assert_eq!(response.meta.headers()["x-ratelimit-limit"], "300");
    Ok(())
}

#[tokio::test]
async fn calls_are_spawned_and_joined() {
    let (_server, client) = service().await;
    let listed = tokio::spawn(client.pets().list().send());
    assert_eq!(listed.await.unwrap().unwrap().len(), 1);
    let new = ["Miez", "Tom"].map(|name| NewPet::new(name, 7));
    let calls = new.iter().map(|new| client.pets().create(new).send());
    let created = join_all(calls).await.into_iter();
    let names = created.map(|pet| pet.unwrap().name);
    assert_eq!(names.collect::<Vec<_>>(), ["Miez", "Tom"]);
}
