//! Tests of the data file in process: it keeps every change, and is closed when the server is
//! dropped.

use std::path::PathBuf;

use petstore_mock::{MockServer, PetStatus, Seed, SeedPet, StartError};
use serde_json::json;

/// A file of this test's own, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("petstore-mock-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    async fn open(&self) -> Result<MockServer, StartError> {
        MockServer::builder().data(&self.0).start().await
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may not even be there.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn every_change_is_kept() {
    let file = Scratch::new("changes");
    let steps: [fn(&MockServer); 7] = [
        |server| drop(server.pets().insert(SeedPet::new("Rex", 7)).unwrap()),
        |server| {
            let sold = SeedPet::new("小春", -7).with_id(-3).with_status(PetStatus::Sold);
            server.pets().insert(sold).unwrap();
            assert!(server.pets().insert(SeedPet::new("twin", 7).with_id(-3)).is_err());
        },
        |server| server.pets().remove(26).unwrap(),
        |server| server.orders().insert(json!({"id": 1, "any": ["thing"]})).unwrap(),
        |server| server.orders().insert(json!({"id": 2})).unwrap(),
        |server| {
            server.orders().clear().unwrap();
            server.orders().insert(json!({"id": 3})).unwrap();
        },
        |server| server.pets().clear().unwrap(),
    ];
    let mut before = file.open().await.unwrap().snapshot();
    for step in steps {
        let server = file.open().await.unwrap();
        assert_eq!(server.snapshot(), before);
        step(&server);
        before = server.snapshot();
    }
    let server = file.open().await.unwrap();
    assert_eq!(server.snapshot(), before);
    assert_eq!(server.pets().insert(SeedPet::new("next", 1)).unwrap().id, 27);
}

#[tokio::test]
async fn a_reset_and_a_restored_snapshot_are_kept() {
    let file = Scratch::new("reset");
    let first = MockServer::builder().data(&file.0).seed(Seed::new().pet(SeedPet::new("Rex", 7)));
    let server = first.start().await.unwrap();
    server.pets().insert(SeedPet::new("Tom", 7)).unwrap();
    let two = server.snapshot();
    server.reset().unwrap();
    assert_eq!(server.pets().len(), 1);
    server.stop().await;
    let server = file.open().await.unwrap();
    assert_eq!(server.pets().len(), 1);
    server.restore(&two).unwrap();
    drop(server);
    assert_eq!(file.open().await.unwrap().snapshot(), two);
}

#[tokio::test]
async fn nothing_can_be_changed_when_the_file_is_closed() {
    let file = Scratch::new("closed");
    let server = file.open().await.unwrap();
    let scope = server.scope("test");
    server.pets().clear().unwrap();
    drop(server);
    drop(scope);
    assert_eq!(file.open().await.unwrap().pets().len(), 0);
}

#[tokio::test]
async fn a_thousand_creations_at_once_have_a_thousand_ids() {
    let file = Scratch::new("thousand");
    let server = MockServer::builder().data(&file.0).seed(Seed::none()).start().await.unwrap();
    let client = super::support::client();
    let mut created = tokio::task::JoinSet::new();
    for nth in 0..1_000 {
        let request = client
            .post(format!("{}/pets", server.url()))
            .bearer_auth("enterprise-key")
            .header("content-type", "application/json")
            .body(format!(r#"{{"name": "{nth}", "categoryId": 7}}"#));
        created.spawn(super::support::reply(request));
    }
    while let Some(reply) = created.join_next().await {
        let reply = reply.unwrap();
        assert_eq!(reply.status, 201);
        let id = reply.json()["id"].as_i64().unwrap();
        assert_eq!(server.pets().get(id).unwrap().name, reply.json()["name"]);
    }
    let ids: Vec<_> = server.pets().all().iter().map(|pet| pet.id).collect();
    assert_eq!(ids, (1..=1_000).collect::<Vec<i64>>());
}
