//! What a newcomer writes compiles.

use futures_util::future::join_all;
use petstore_client::{Client, NewPet, Pet, PetStatus, Result};
use petstore_mock::{MockServer, Plan, Seed, SeedPet};

use super::kit::{START, key, mock};

/// A service with one pet, Rex.
async fn service() -> (MockServer, Client) {
    let rex = SeedPet::new("Rex", 7).with_status(petstore_mock::PetStatus::Sold);
    let builder = mock(key(), Plan::Pro).seed(Seed::new().pet(rex));
    let server = builder.start().await.unwrap();
    let client = Client::new(server.url(), key()).unwrap();
    (server, client)
}

#[tokio::test]
async fn a_field_of_an_awaited_pet() -> Result<()> {
    let (_server, client) = service().await;
    let new = NewPet::new("Miez", 7);
    assert_eq!(client.pets().create(&new).await?.name, "Miez");
    Ok(())
}

#[tokio::test]
async fn an_awaited_page_is_iterated() -> Result<()> {
    let (_server, client) = service().await;
    let mut pets = client.pets().list().await?.into_iter();
    assert_eq!(pets.next().unwrap().name, "Rex");
    for pet in &client.pets().list().await? {
        assert_eq!(pet.name, "Rex");
    }
    Ok(())
}

/// As in `axum::Json(call.await?)`.
#[tokio::test]
async fn what_a_call_returns_is_serialized() -> Result<()> {
    let (_server, client) = service().await;
    let page = serde_json::to_string(&client.pets().list().await?).unwrap();
    let rex = r#"{"id":1,"name":"Rex","categoryId":7,"status":"sold"}"#;
    assert_eq!(page, format!("[{rex}]"));
    let miez = NewPet::new("Miez", 7);
    let created = serde_json::to_string(&client.pets().create(&miez).await?).unwrap();
    assert_eq!(created, r#"{"id":2,"name":"Miez","categoryId":7}"#);
    let orders = serde_json::to_string(&client.store().orders().await?).unwrap();
    assert_eq!(orders, "[]");
    Ok(())
}

async fn adopt(client: &Client, name: &str) -> petstore_client::Result<Pet> {
    client.pets().create(&NewPet::new(name, 7)).await
}

#[tokio::test]
async fn a_function_returns_the_result_of_a_call() {
    let (_server, client) = service().await;
    let miez: Pet = adopt(&client, "Miez").await.unwrap();
    assert_eq!(miez.id, 2);
}

#[tokio::test]
async fn calls_are_spawned_and_joined() {
    let (_server, client) = service().await;
    let listed = tokio::spawn(client.pets().list().send());
    assert_eq!(listed.await.unwrap().unwrap().len(), 1);
    let new = ["Miez", "Tom"].map(|name| NewPet::new(name, 7));
    let calls = new.iter().map(|new| client.pets().create(new).send());
    let created = join_all(calls)
        .await
        .into_iter()
        .collect::<Result<Vec<_>>>();
    let names = created.unwrap().into_iter().map(|pet| pet.name);
    assert_eq!(names.collect::<Vec<_>>(), ["Miez", "Tom"]);
}

#[tokio::test]
async fn a_status_is_given_as_text() -> Result<()> {
    let (_server, client) = service().await;
    let miez = NewPet::new("Miez", 7).with_status("sold");
    client.pets().create(&miez).await?;
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
    assert_eq!(response.meta.headers()["x-ratelimit-limit"], "300");
    let status = client.pets().list().with_meta().await?.meta.status();
    assert_eq!(status, 200);
    Ok(())
}

#[tokio::test]
async fn a_header_of_all_requests() -> Result<()> {
    let (server, _) = service().await;
    let client = Client::builder(server.url())
        .api_key(key())
        .header("X-Team", "cats")
        .header("X-Build", START.to_string())
        .build()?;
    client.pets().list().await?;
    let headers = &server.requests(..)[0].headers;
    assert_eq!(headers["x-team"], "cats");
    assert_eq!(headers["x-build"], START.to_string().as_str());
    Ok(())
}

/// The state of a web service, as frameworks require it.
#[derive(Clone)]
struct App {
    client: Client,
}

fn serve<S: Clone + Send + Sync + 'static>(state: &S) -> S {
    state.clone()
}

#[tokio::test]
async fn a_client_is_the_state_of_a_web_service() {
    let (_server, client) = service().await;
    let app = serve(&App { client });
    let handler = async move { app.client.pets().list().await };
    assert_eq!(tokio::spawn(handler).await.unwrap().unwrap().len(), 1);
}
