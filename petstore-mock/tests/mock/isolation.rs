//! Tests for suites that share one server: pets for each key, resets of keys, faults chosen by a header,
//! and snapshots of all keys.

use std::time::Duration;

use petstore_mock::{Builder, Effect, MockServer, Plan, SeedPet, Snapshot};
use reqwest::Method;

use super::support::{Mock, REX, reply, start, start_with};

async fn count_as(mock: &Mock, key: &str) -> usize {
    let pets = mock.get_as(key, "/v1/pets?limit=100").await;
    pets.json().as_array().unwrap().len()
}

#[tokio::test]
async fn isolated_keys_do_not_see_each_others_pets() {
    let mock = start_with(Builder::isolate_keys).await;
    for (key, id) in [("pro-key", 26), ("pro-key", 27), ("free-key", 26)] {
        assert_eq!(mock.post_as(key, REX).await.json()["id"], id);
    }
    for (key, count) in [("pro-key", 27), ("free-key", 26), ("business-key", 25)] {
        assert_eq!(count_as(&mock, key).await, count, "{key}");
    }
    // A key without a request so far gets the server's current pets.
    mock.server.pets().insert(SeedPet::new("Tom", 1)).unwrap();
    let late = mock.server.key(Plan::Free);
    assert_eq!(count_as(&mock, &late).await, 26);
    assert_eq!(count_as(&mock, "business-key").await, 25);
    let key = mock.server.keys().get("pro-key").unwrap();
    key.pets().clear().unwrap();
    assert_eq!((key.pets().len(), mock.server.pets().len()), (0, 26));
    for (key, total) in [(1, 26), (2, 0)] {
        let shown = mock.get(&format!("/_mock/pets?key={key}")).await.json();
        assert_eq!(shown["total"], total);
    }
    // A key that is not there gets no pets of its own.
    let gone = mock.get("/_mock/pets?key=999").await;
    gone.expect_error(404, "route_not_found");
    late.remove();
    assert_eq!(late.pets().len(), 26);
    let snapshot = mock.get("/_mock/snapshot").await.json();
    let keys = snapshot["keys"].as_object().unwrap().keys();
    assert_eq!(keys.collect::<Vec<_>>(), ["1", "2", "3"]);
    mock.server.reset().unwrap();
    assert_eq!(count_as(&mock, "pro-key").await, 25);
}

#[tokio::test]
async fn without_isolation_a_key_has_the_servers_pets() {
    let mock = start().await;
    let key = mock.server.key(Plan::Free);
    key.pets().insert(SeedPet::new("Tom", 1)).unwrap();
    assert_eq!(mock.server.pets().len(), 26);
    assert_eq!(count_as(&mock, "free-key").await, 26);
}

#[tokio::test]
async fn one_key_is_reset_and_the_others_are_not() {
    let mock = start_with(Builder::isolate_keys).await;
    for key in ["free-key", "pro-key"] {
        mock.post_as(key, REX).await.expect_status(201);
    }
    let key = mock.server.keys().get("free-key").unwrap();
    key.ban(Duration::from_secs(600));
    key.reset();
    let usage = key.usage().unwrap();
    let used = (usage.minute.used, usage.day.used);
    assert_eq!((used, usage.banned_until), ((0, 0), None));
    assert_eq!(count_as(&mock, "free-key").await, 25);
    assert_eq!(count_as(&mock, "pro-key").await, 26);
}

#[tokio::test]
async fn a_request_chooses_a_fault_by_its_name_if_that_is_switched_on() {
    let ask = |mock: &Mock, name: &str| {
        let request = mock.request(Method::GET, "/v1/pets").bearer_auth("pro-key");
        reply(request.header("x-mock-fault", name))
    };
    let busy = |mock: &Mock| {
        let busy = mock.server.faults().on(..).named("busy").only_named();
        busy.apply(Effect::Status(503))
    };
    let mock = start_with(Builder::fault_header).await;
    let is_busy = busy(&mock);
    assert_eq!(mock.get("/v1/pets").await.status, 200);
    assert_eq!(ask(&mock, "busy").await.status, 503);
    assert_eq!(is_busy.hits(), 1);
    assert_eq!(ask(&mock, "418").await.status, 418);
    let broken = ask(&mock, "malformedJson").await;
    assert!(serde_json::from_str::<serde_json::Value>(&broken.body).is_err());
    assert_eq!(mock.server.requests(..)[3].faults, ["malformedJson"]);
    for name in ["bsy", "99", "\u{e9}"] {
        let refused = ask(&mock, name).await;
        refused.expect_error(400, "invalid_parameter");
        assert!(refused.message().contains("X-Mock-Fault"), "{name}");
    }
    let off = start().await;
    busy(&off).optional().detach();
    for name in ["busy", "503"] {
        assert_eq!(ask(&off, name).await.status, 200);
    }
}

#[tokio::test]
async fn a_snapshot_contains_the_pets_of_each_key() {
    let server = MockServer::builder().isolate_keys().start().await.unwrap();
    let (one, other) = (server.key(Plan::Free), server.key(Plan::Free));
    let rex = one.pets().insert(SeedPet::new("Rex", 7)).unwrap();
    other.pets().clear().unwrap();
    let text = serde_json::to_string(&server.snapshot()).unwrap();
    let snapshot: Snapshot = serde_json::from_str(&text).unwrap();
    one.pets().clear().unwrap();
    other.pets().insert(SeedPet::new("Tom", 7)).unwrap();
    server.pets().clear().unwrap();
    server.restore(&snapshot).unwrap();
    let lengths = [one.pets(), other.pets(), server.pets()].map(petstore_mock::Pets::len);
    assert_eq!(lengths, [26, 0, 25]);
    assert_eq!(one.pets().get(rex.id), Some(rex));
}
