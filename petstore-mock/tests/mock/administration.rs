//! Tests of the paths under `/_mock` that change the mock: clock, keys, pets, seed, faults, reset and
//! snapshots.

use serde_json::{Value, json};

use super::support::{MINUTE_ENDS, NOW, REX, at, start};

#[tokio::test]
async fn health_needs_no_key_and_has_no_quota() {
    let mock = start().await;
    let health = mock.send("GET /_mock/health", "").await;
    assert_eq!(health.json(), json!({"status": "ok"}));
    assert_eq!(health.header("x-ratelimit-limit"), "-");
    mock.get_as("free-key", "/_mock/health").await;
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 59);
}

#[tokio::test]
async fn an_invalid_body_is_400_and_changes_nothing() {
    let mock = start().await;
    let before = mock.get("/_mock/snapshot").await;
    for (line, body) in [
        ("POST /_mock/clock/advance", ""),
        ("POST /_mock/clock/advance", "{"),
        ("POST /_mock/clock/advance", r#"{"seconds": -0.001}"#),
        ("POST /_mock/clock/advance", r#"{"seconds": 1e12}"#),
        ("POST /_mock/clock/advance", r#"{"seconds": 1, "x": 1}"#),
        ("POST /_mock/clock/set", r#"{"now": "soon"}"#),
        ("POST /_mock/keys", r#"{"plan": "gold"}"#),
        ("POST /_mock/keys", r#"{"plan": "free", "key": "a b"}"#),
        ("POST /_mock/keys", r#"{"plan": "free", "kay": "x"}"#),
        ("POST /_mock/keys", r#"{"plan": "free", "name": ""}"#),
        ("POST /_mock/keys", r#"{"plan": "free", "name": "a\nb"}"#),
        ("POST /_mock/keys", r#"{"plan": "free", "name": "…abcd"}"#),
        ("POST /_mock/keys", r##"{"plan": "free", "name": "#2"}"##),
        ("POST /_mock/keys", r#"{"plan": "free", "senders": 0}"#),
        ("PATCH /_mock/keys/1", r#"{"senders": 0}"#),
        ("POST /_mock/seed", r#"[{"name": "Rex"}]"#),
        ("POST /_mock/pets", r#"{"name": "Rex"}"#),
        ("POST /_mock/faults", r#"{"effect": {"nap": {}}}"#),
        ("PUT /_mock/snapshot", "{}"),
    ] {
        let refused = mock.send(line, body).await;
        assert_eq!(refused.status, 400, "{line} {body}");
        refused.expect_error(400, "invalid_body");
    }
    assert_eq!(mock.get("/_mock/snapshot").await.body, before.body);
    assert_eq!(mock.server.clock().now(), at(NOW));
}

#[tokio::test]
async fn what_conflicts_with_the_state_or_is_not_there_changes_nothing() {
    let mock = start().await;
    let before = mock.get("/_mock/snapshot").await;
    let taken = r#"{"plan": "free", "key": "free-key"}"#;
    let named = r#"{"plan": "free", "name": "free-key"}"#;
    let twins = format!("[{}, {0}]", REX.replace('{', "{\"id\": 40, "));
    let known = REX.replace('{', "{\"id\": 1, ");
    for (line, body) in [
        ("POST /_mock/keys", taken),
        ("POST /_mock/keys", named),
        ("POST /_mock/seed", &twins),
        ("POST /_mock/pets", &known),
        ("POST /_mock/clock/set", r#"{"now": "2025-01-01"}"#),
    ] {
        let refused = mock.send(line, body.to_owned()).await;
        refused.expect_error(409, "conflict");
        assert!(!refused.body.contains("free-key"), "{}", refused.body);
    }
    for path in ["keys/99", "keys/x", "keys/99/ban", "pets/x", "faults/9"] {
        let gone = mock.send(&format!("DELETE /_mock/{path}"), "").await;
        assert_eq!(gone.status, 404, "{path}");
    }
    assert_eq!(mock.get("/_mock/snapshot").await.body, before.body);
    assert_eq!(mock.server.clock().now(), at(NOW));
}

#[tokio::test]
async fn the_clock_is_moved_frozen_and_resumed() {
    let mock = start().await;
    let moved = mock
        .send("POST /_mock/clock/advance", r#"{"seconds": 60.5}"#)
        .await;
    let expected = json!({
        "now": NOW as f64 + 60.5, "date": "Thu, 01 Jan 2026 00:01:10 GMT", "frozen": true,
    });
    assert_eq!((moved.status, moved.json()), (200, expected.clone()));
    assert_eq!(mock.get("/_mock/clock").await.json(), expected);
    let resumed = mock.send("POST /_mock/clock/resume", "").await;
    assert_eq!(resumed.json()["frozen"], false);
    let frozen = mock.send("POST /_mock/clock/freeze", "").await;
    assert_eq!(frozen.json()["frozen"], true);
    assert_eq!(mock.get("/_mock/clock").await.json(), frozen.json());
    let far = r#"{"now": "4000-01-01T00:00:00Z"}"#;
    let moved = mock.send("POST /_mock/clock/set", far).await;
    assert_eq!(moved.json()["now"], 64_060_588_800.0);
    let past = r#"{"now": "2026-01-01"}"#;
    let back = mock.send("POST /_mock/clock/set", past).await;
    assert!(back.message().contains("--start-at"), "{}", back.message());
}

#[tokio::test]
async fn keys_are_listed_with_their_usage() {
    let mock = start().await;
    for _ in 0..62 {
        mock.get_as("free-key", "/v1/pets").await;
    }
    let key = mock.get("/_mock/keys").await.json()[0].clone();
    let minute = json!({"limit": 60, "used": 60, "remaining": 0, "reset": MINUTE_ENDS as f64});
    assert_eq!((&key["plan"], &key["minute"]), (&json!("free"), &minute));
    assert_eq!(
        (&key["day"]["used"], &key["day"]["remaining"]),
        (&json!(60), &json!(940))
    );
    let wait = (&key["retryAfterUntil"], &key["bannedUntil"]);
    assert_eq!(wait, (&json!(MINUTE_ENDS as f64), &Value::Null));
}

#[tokio::test]
async fn keys_are_added_changed_banned_reset_and_removed() {
    let mock = start().await;
    let body = r#"{"plan": "enterprise:7/9", "name": "ci"}"#;
    let added = mock.send("POST /_mock/keys", body).await;
    added.expect_status(201);
    let (path, added) = (format!("/_mock/keys/{}", added.json()["id"]), added.json());
    let secret = added["key"].as_str().unwrap();
    let ask = async || mock.get_as(secret, "/v1/pets").await;
    assert_eq!(ask().await.rate().0, 7);
    let label = mock.server.requests(..)[0].key.clone().unwrap();
    assert_eq!(label.to_string(), "#5 ci (enterprise:7/9)");
    assert!(!mock.get("/_mock/keys").await.body.contains(secret));

    let send = async |method: &str, end: &str, body: &'static str| {
        mock.send(&format!("{method} {path}{end}"), body)
            .await
            .status
    };
    assert_eq!(send("PATCH", "", r#"{"plan": "pro"}"#).await, 204);
    assert_eq!(ask().await.rate().0, 300);
    for (method, end) in [("DELETE", "/ban"), ("POST", "/reset")] {
        assert_eq!(send("PUT", "/ban", r#"{"seconds": 20}"#).await, 204);
        let banned = ask().await;
        banned.expect_error(429, "key_banned");
        assert_eq!(banned.header("retry-after"), "20");
        assert_eq!(send(method, end, "").await, 204);
        assert_eq!(ask().await.status, 200);
    }
    assert_eq!(
        ask().await.rate().1,
        298,
        "the reset has forgotten the others"
    );
    assert_eq!(send("DELETE", "", "").await, 204);
    ask().await.expect_error(401, "unauthorized");

    let known = mock
        .send("POST /_mock/keys", r#"{"key": "mine", "plan": "free"}"#)
        .await;
    // The response contains only keys that the mock has created.
    assert_eq!((known.status, known.json().get("key")), (201, None));
    assert_eq!(mock.get_as("mine", "/v1/pets").await.rate().0, 60);
}

#[tokio::test]
async fn pets_are_shown_added_removed_and_replaced_by_a_seed() {
    let mock = start().await;
    let ids = async |query: &str| {
        let page = mock.get(&format!("/_mock/pets{query}")).await.json();
        let pets = page["pets"].as_array().unwrap().iter();
        let ids = pets.map(|pet| pet["id"].as_i64().unwrap());
        (ids.collect::<Vec<_>>(), page["total"].as_u64().unwrap())
    };
    assert_eq!(ids("?limit=2").await, (vec![1, 2], 25));
    assert_eq!(ids("?limit=2&after=23").await, (vec![24, 25], 25));
    assert_eq!(ids("?limit=1&status=sold").await, (vec![4], 25));
    let lost = mock.get("/_mock/pets?status=lost").await;
    lost.expect_error(400, "invalid_parameter");

    let added = mock.send("POST /_mock/pets", REX).await;
    let rex = json!({"id": 26, "name": "Rex", "categoryId": 7});
    assert_eq!((added.status, added.json()), (201, rex.clone()));
    assert_eq!(mock.get("/v1/pets/26").await.json(), rex);
    mock.change("DELETE /_mock/pets/26", "").await;
    assert_eq!(ids("?limit=0").await, (vec![], 25));
    mock.change("DELETE /_mock/pets", "").await;
    assert_eq!(ids("").await, (vec![], 0));

    let seed = r#"{"pets": [{"name": "Rex", "categoryId": 7, "id": 40}], "orders": [{"n": 1}]}"#;
    mock.change("POST /_mock/seed", seed).await;
    assert_eq!(ids("").await, (vec![40], 1));
    assert_eq!(mock.get("/v1/store/orders").await.body, r#"[{"n":1}]"#);
}

#[tokio::test]
async fn a_body_has_at_most_16_mib() {
    let mock = start().await;
    for (mebibytes, status) in [(15, 204), (17, 413)] {
        let name = "x".repeat(mebibytes << 20);
        let seed = format!("[{{\"name\": \"{name}\", \"categoryId\": 7}}]");
        let answer = mock.send("POST /_mock/seed", seed).await;
        answer.expect_status(status);
    }
}

#[tokio::test]
async fn a_snapshot_restores_the_pets_and_gives_fresh_quotas() {
    let mock = start().await;
    mock.get_as("free-key", "/v1/pets").await;
    let snapshot = mock.get("/_mock/snapshot").await.body;
    assert!(!snapshot.contains("free-key"));
    mock.post(REX).await;
    mock.get_as("free-key", "/v1/pets").await;
    mock.change("PUT /_mock/snapshot", snapshot.clone()).await;
    assert_eq!(mock.get("/_mock/snapshot").await.body, snapshot);
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 59);
    mock.advance(1);
    mock.change("POST /_mock/reset", "").await;
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 59);
    assert_eq!(mock.server.clock().now(), at(NOW + 1), "the time goes on");
    // In JSON Schema these are integers, and some programs write integers this way.
    let last_id = |number: &str| {
        let categories = snapshot.replace("\"categoryId\":3", "\"categoryId\":3.0");
        categories.replace("\"lastId\":25", &format!("\"lastId\":{number}"))
    };
    mock.change("PUT /_mock/snapshot", last_id("715.0")).await;
    let read_back = mock.get("/_mock/snapshot").await.json();
    assert_eq!(read_back["store"]["lastId"], 715);
    let twins = snapshot.replace("\"id\":1,", "\"id\":2,");
    for invalid in [last_id("25.5"), twins] {
        let refused = mock.send("PUT /_mock/snapshot", invalid).await;
        refused.expect_error(400, "invalid_body");
    }
}

#[tokio::test]
async fn faults_are_set_listed_and_removed() {
    let mock = start().await;
    let broken = r#"{"operation": "listPets", "when": {"first": 1}, "key": "enterprise-key",
        "effect": {"status": 503}}"#;
    let set = mock.send("POST /_mock/faults", broken).await;
    let path = format!("DELETE /_mock/faults/{}", set.json()["id"]);
    assert_eq!(mock.get("/v1/pets").await.status, 503);
    assert_eq!(mock.get("/v1/pets").await.status, 200);
    let listed = mock.get("/_mock/faults").await;
    assert_eq!(listed.json()[0]["hits"], 1, "{}", listed.body);
    assert!(!listed.body.contains("enterprise-key"), "{}", listed.body);
    mock.change(&path, "").await;
    mock.send(&path, "").await.expect_status(404);
    mock.send("POST /_mock/faults", broken)
        .await
        .expect_status(201);
    mock.change("DELETE /_mock/faults", "").await;
    assert_eq!(mock.get("/v1/pets").await.status, 200);
    let unknown = broken.replace("enterprise-key", "s3cr3t");
    let refused = mock.send("POST /_mock/faults", unknown).await;
    refused.expect_error(400, "invalid_body");
    assert!(!refused.body.contains("s3cr3t"), "{}", refused.body);
}
