//! Tests for suites that share one server: pets for each key, names and resets of keys, faults chosen by a
//! header, waiting for requests, and snapshots of all keys.

use std::time::Duration;

use petstore_mock::{Effect, MockServer, Operation, Plan, SeedPet, Snapshot};
use reqwest::Method;

use super::support::{REX, Reply, reply, start, start_with};

async fn post_as(mock: &super::support::Mock, key: &str, body: &'static str) -> Reply {
    let request = mock
        .request(Method::POST, "/v1/pets")
        .bearer_auth(key)
        .header("content-type", "application/json");
    reply(request.body(body)).await
}

async fn count_as(mock: &super::support::Mock, key: &str) -> usize {
    let pets = mock.get_as(key, "/v1/pets?limit=100").await;
    pets.json().as_array().unwrap().len()
}

#[tokio::test]
async fn isolated_keys_do_not_see_each_others_pets() {
    let mock = start_with(petstore_mock::Builder::isolate_keys).await;
    for _ in 0..2 {
        assert_eq!(post_as(&mock, "pro-key", REX).await.status, 201);
    }
    assert_eq!(post_as(&mock, "free-key", REX).await.json()["id"], 26);
    let counts = (
        count_as(&mock, "pro-key").await,
        count_as(&mock, "free-key").await,
        count_as(&mock, "business-key").await,
    );
    assert_eq!(counts, (27, 26, 25));
    assert_eq!(mock.get_as("pro-key", "/v1/pets/27").await.status, 200);
    assert_eq!(mock.get_as("free-key", "/v1/pets/27").await.status, 404);
    // A key without a request so far gets the server's current pets.
    mock.server.pets().insert(SeedPet::new("Tom", 1)).unwrap();
    let late = mock.server.key(Plan::Free);
    assert_eq!(count_as(&mock, &late).await, 26);
    assert_eq!(count_as(&mock, "free-key").await, 26);
    let key = mock.server.keys().get("pro-key").unwrap();
    key.pets().clear().unwrap();
    assert_eq!((key.pets().len(), mock.server.pets().len()), (0, 26));
    let shown = mock.get("/_mock/pets?key=1").await.json();
    assert_eq!(shown["total"], 26);
    assert_eq!(mock.get("/_mock/pets?key=2").await.json()["total"], 0);
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
    let mock = start_with(petstore_mock::Builder::isolate_keys).await;
    for key in ["free-key", "pro-key"] {
        assert_eq!(post_as(&mock, key, REX).await.status, 201);
    }
    let key = mock.server.keys().get("free-key").unwrap();
    key.ban(Duration::from_secs(600));
    let reset = |id: &'static str| reply(mock.request(Method::POST, id));
    assert_eq!(reset("/_mock/keys/1/reset").await.status, 204);
    let usage = key.usage().unwrap();
    assert_eq!(
        (usage.minute.used, usage.day.used, usage.banned_until),
        (0, 0, None)
    );
    assert_eq!(count_as(&mock, "free-key").await, 25);
    assert_eq!(count_as(&mock, "pro-key").await, 26);
    reset("/_mock/keys/99/reset")
        .await
        .expect_error(404, "route_not_found");
    key.ban(Duration::from_secs(600));
    key.reset();
    assert_eq!(key.usage().unwrap().banned_until, None);
}

#[tokio::test]
async fn a_key_that_is_added_over_http_can_have_a_name() {
    let mock = start().await;
    let add = |body: &'static str| reply(mock.request(Method::POST, "/_mock/keys").body(body));
    let added = add(r#"{"plan": "free", "name": "ci"}"#).await;
    let key = added.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(mock.get_as(&key, "/v1/pets").await.status, 200);
    let label = mock.server.requests(..)[0].key.clone().unwrap();
    let number = mock.server.keys().all().len();
    assert_eq!(label.to_string(), format!("#{number} ci (free)"));
    for body in [
        r#"{"plan": "free", "name": ""}"#,
        r#"{"plan": "free", "name": "a\nb"}"#,
        r#"{"plan": "free", "name": "…abcd"}"#,
        r#"{"plan": "free", "name": 7}"#,
    ] {
        add(body).await.expect_error(400, "invalid_body");
    }
    let key = mock
        .server
        .keys()
        .insert_named("lib", "a-key", Plan::Pro)
        .unwrap();
    let label = key.usage().unwrap().label.to_string();
    assert_eq!(label, format!("#{} lib (pro)", number + 1));
}

#[tokio::test]
async fn a_request_chooses_a_fault_by_its_name_if_that_is_switched_on() {
    let ask = |mock: &super::support::Mock, name: Option<&str>| {
        let mut request = mock.request(Method::GET, "/v1/pets").bearer_auth("pro-key");
        if let Some(name) = name {
            request = request.header("x-mock-fault", name);
        }
        reply(request)
    };
    let mock = start_with(petstore_mock::Builder::fault_header).await;
    let busy = mock.server.faults().on_all().named("busy").only_named();
    let busy = busy.apply(Effect::status(503));
    assert_eq!(ask(&mock, None).await.status, 200);
    assert_eq!(ask(&mock, Some("busy")).await.status, 503);
    assert_eq!(busy.hits(), 1);
    assert_eq!(ask(&mock, Some("418")).await.status, 418);
    let broken = ask(&mock, Some("malformedJson")).await;
    assert!(serde_json::from_str::<serde_json::Value>(&broken.body).is_err());
    assert_eq!(mock.server.requests(..)[3].faults, ["malformedJson"]);
    for name in ["bsy", "99", "600", "\u{e9}"] {
        let refused = ask(&mock, Some(name)).await;
        refused.expect_error(400, "invalid_parameter");
        assert!(
            refused.message().contains("X-Mock-Fault"),
            "{}",
            refused.message()
        );
    }
    let json = r#"{"name": "late", "when": "named", "effect": {"status": 504}}"#;
    let set = reply(mock.request(Method::POST, "/_mock/faults").body(json)).await;
    assert_eq!(set.status, 201);
    assert_eq!(ask(&mock, Some("late")).await.status, 504);
    let off = start().await;
    off.server
        .faults()
        .on_all()
        .named("busy")
        .only_named()
        .apply(Effect::status(503))
        .detach();
    for name in ["busy", "503", "bsy"] {
        assert_eq!(ask(&off, Some(name)).await.status, 200);
    }
}

#[tokio::test]
async fn a_test_waits_for_requests() {
    let mock = start().await;
    let url = format!("{}/pets", mock.server.url());
    let sending = tokio::spawn(async move {
        for _ in 0..2 {
            reqwest::get(&url).await.unwrap();
        }
    });
    mock.server.wait_for(Operation::ListPets, 2).await;
    assert_eq!(mock.server.requests(Operation::ListPets).len(), 2);
    sending.await.unwrap();
}

#[tokio::test]
async fn a_limit_is_a_number_as_json_writes_it() {
    let mock = start().await;
    for limit in ["05", "00", "0", "+5", "5.0"] {
        let refused = mock.get(&format!("/v1/pets?limit={limit}")).await;
        refused.expect_error(400, "invalid_parameter");
    }
    assert_eq!(mock.get("/v1/pets?limit=50").await.status, 200);
}

#[tokio::test]
async fn a_snapshot_contains_the_pets_of_each_key() {
    let server = MockServer::builder().isolate_keys().start().await.unwrap();
    let (one, other) = (server.key(Plan::Free), server.key(Plan::Free));
    let rex = one.pets().insert(SeedPet::new("Rex", 7)).unwrap();
    other.pets().clear().unwrap();
    let text = serde_json::to_string(&server.snapshot()).unwrap();
    one.pets().clear().unwrap();
    other.pets().insert(SeedPet::new("Tom", 7)).unwrap();
    server.pets().clear().unwrap();
    server
        .restore(&serde_json::from_str::<Snapshot>(&text).unwrap())
        .unwrap();
    let lengths = [one.pets(), other.pets(), server.pets()].map(petstore_mock::Pets::len);
    assert_eq!(lengths, [26, 0, 25]);
    assert_eq!(one.pets().get(rex.id), Some(rex));
}
