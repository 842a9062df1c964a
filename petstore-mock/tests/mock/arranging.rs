//! Tests of keys, pets, seed, reset and snapshots under `/_mock`.

use reqwest::Method;
use serde_json::{Value, json};

use super::support::{MINUTE_ENDS, Mock, NOW, REX, Reply, reply, start};

async fn send(mock: &Mock, method: Method, path: &str, body: &str) -> Reply {
    reply(mock.request(method, path).body(body.to_owned())).await
}

/// Returns the key whose label contains this text, from the list of keys.
async fn key(mock: &Mock, part: &str) -> Value {
    let keys = mock.get("/_mock/keys").await.json();
    let has = |key: &&Value| {
        key["label"]
            .as_str()
            .is_some_and(|label| label.contains(part))
    };
    keys.as_array()
        .unwrap()
        .iter()
        .find(has)
        .expect(part)
        .clone()
}

#[tokio::test]
async fn keys_are_listed_with_their_usage() {
    let mock = start().await;
    for _ in 0..62 {
        mock.get_as("free-key", "/v1/pets").await;
    }
    let free = key(&mock, "free-key").await;
    assert_eq!(free["plan"], "free");
    let minute = json!({"limit": 60, "used": 60, "remaining": 0, "reset": MINUTE_ENDS as f64});
    assert_eq!(free["minute"], minute);
    assert_eq!(
        (&free["day"]["used"], &free["day"]["remaining"]),
        (&json!(60), &json!(940))
    );
    assert_eq!(free["retryAfterUntil"], json!(MINUTE_ENDS as f64));
    assert_eq!(free["bannedUntil"], Value::Null);
    for _ in 0..11 {
        mock.get_as("free-key", "/v1/pets").await;
    }
    assert_eq!(
        key(&mock, "free-key").await["bannedUntil"],
        json!((NOW + 300) as f64)
    );
}

#[tokio::test]
async fn keys_are_added_changed_banned_and_removed() {
    let mock = start().await;
    let added = send(
        &mock,
        Method::POST,
        "/_mock/keys",
        r#"{"plan": "enterprise:7/9"}"#,
    )
    .await;
    assert_eq!(added.status, 201);
    let (id, secret) = (added.json()["id"].clone(), added.json()["key"].clone());
    let secret = secret.as_str().unwrap();
    let ask = async || mock.get_as(secret, "/v1/pets").await;
    assert_eq!(ask().await.rate().0, 7);
    assert!(!mock.get("/_mock/keys").await.body.contains(secret));

    let path = format!("/_mock/keys/{id}");
    assert_eq!(
        send(&mock, Method::PATCH, &path, r#"{"plan": "pro"}"#)
            .await
            .status,
        204
    );
    assert_eq!(ask().await.rate().0, 300);
    let ban = format!("{path}/ban");
    assert_eq!(
        send(&mock, Method::PUT, &ban, r#"{"seconds": 20}"#)
            .await
            .status,
        204
    );
    let banned = ask().await;
    banned.expect_error(429, "key_banned");
    assert_eq!(banned.header("retry-after"), "20");
    assert_eq!(send(&mock, Method::DELETE, &ban, "").await.status, 204);
    assert_eq!(ask().await.status, 200);
    assert_eq!(send(&mock, Method::DELETE, &path, "").await.status, 204);
    ask().await.expect_error(401, "unauthorized");

    let known = send(
        &mock,
        Method::POST,
        "/_mock/keys",
        r#"{"key": "mine", "plan": "free"}"#,
    )
    .await;
    assert_eq!(
        (known.status, known.json().get("key")),
        (201, None),
        "the response contains only keys that the mock has created"
    );
    assert_eq!(mock.get_as("mine", "/v1/pets").await.rate().0, 60);
}

#[tokio::test]
async fn an_invalid_key_changes_nothing() {
    let mock = start().await;
    let before = mock.get("/_mock/keys").await;
    for body in [
        "",
        "{}",
        r#"{"plan": "gold"}"#,
        r#"{"plan": "free", "key": ""}"#,
        r#"{"plan": "free", "key": "a b"}"#,
        r#"{"plan": "free", "kay": "x"}"#,
    ] {
        let refused = send(&mock, Method::POST, "/_mock/keys", body).await;
        refused.expect_error(400, "invalid_body");
    }
    let taken = r#"{"plan": "free", "key": "free-key"}"#;
    let taken = send(&mock, Method::POST, "/_mock/keys", taken).await;
    taken.expect_error(409, "conflict");
    assert!(!taken.body.contains("free-key"), "{}", taken.body);
    for path in ["/_mock/keys/99", "/_mock/keys/x", "/_mock/keys/99/ban"] {
        send(&mock, Method::DELETE, path, "")
            .await
            .expect_error(404, "route_not_found");
    }
    assert_eq!(mock.get("/_mock/keys").await.body, before.body);
}

#[tokio::test]
async fn pets_are_shown_without_a_key_and_replaced_by_a_seed() {
    let mock = start().await;
    let ids = async |query: &str| {
        let page = mock.get(&format!("/_mock/pets{query}")).await.json();
        let ids = page["pets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pet| pet["id"].as_i64().unwrap());
        (ids.collect::<Vec<_>>(), page["total"].as_u64().unwrap())
    };
    assert_eq!(ids("?limit=2").await, (vec![1, 2], 25));
    assert_eq!(ids("?limit=2&after=23").await, (vec![24, 25], 25));
    assert_eq!(ids("?limit=1&status=sold").await, (vec![4], 25));
    mock.get("/_mock/pets?status=lost")
        .await
        .expect_error(400, "invalid_parameter");

    let seed = r#"{"pets": [{"name": "Rex", "categoryId": 7, "id": 40}], "orders": [{"n": 1}]}"#;
    assert_eq!(
        send(&mock, Method::POST, "/_mock/seed", seed).await.status,
        204
    );
    assert_eq!(ids("").await, (vec![40], 1));
    assert_eq!(mock.get("/v1/store/orders").await.body, r#"[{"n":1}]"#);
    for seed in ["", "[", r#"[{"name": "Rex"}]"#, r#"{"pats": []}"#] {
        send(&mock, Method::POST, "/_mock/seed", seed)
            .await
            .expect_error(400, "invalid_body");
    }
    let pet = r#"{"name": "Rex", "categoryId": 7, "id": 40}"#;
    let twins = send(
        &mock,
        Method::POST,
        "/_mock/seed",
        &format!("[{pet}, {pet}]"),
    )
    .await;
    twins.expect_error(409, "conflict");
    assert_eq!(ids("").await, (vec![40], 1));
}

#[tokio::test]
async fn a_reset_brings_back_all_but_the_time() {
    let mock = start().await;
    mock.post(REX).await;
    mock.advance(1);
    assert_eq!(
        send(&mock, Method::POST, "/_mock/reset", "").await.status,
        204
    );
    assert_eq!(mock.get("/_mock/pets").await.json()["total"], 25);
    assert_eq!(
        mock.get("/_mock/clock").await.json()["now"],
        json!((NOW + 1) as f64)
    );
}

#[tokio::test]
async fn a_snapshot_is_put_back_as_it_was_taken() {
    let mock = start().await;
    mock.get_as("free-key", "/v1/pets").await;
    let snapshot = mock.get("/_mock/snapshot").await;
    assert!(!snapshot.body.contains("free-key"));
    mock.post(REX).await;
    mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(
        send(&mock, Method::PUT, "/_mock/snapshot", &snapshot.body)
            .await
            .status,
        204
    );
    assert_eq!(mock.get("/_mock/snapshot").await.body, snapshot.body);
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 58);
    // In JSON Schema these are integers, and some programs write integers this way.
    let floats = snapshot
        .body
        .replace("\"categoryId\":3", "\"categoryId\":3.0");
    let floats = floats.replace("\"lastId\":25", "\"lastId\":25.0");
    assert_eq!(
        send(&mock, Method::PUT, "/_mock/snapshot", &floats)
            .await
            .status,
        204
    );
    assert_eq!(mock.get("/_mock/snapshot").await.body, snapshot.body);
    let half = floats.replace("25.0", "25.5");
    send(&mock, Method::PUT, "/_mock/snapshot", &half)
        .await
        .expect_error(400, "invalid_body");
    for body in ["", "{}", "[]"] {
        send(&mock, Method::PUT, "/_mock/snapshot", body)
            .await
            .expect_error(400, "invalid_body");
    }
    let other = snapshot.body.replacen("\"version\":2", "\"version\":1", 1);
    let refused = send(&mock, Method::PUT, "/_mock/snapshot", &other).await;
    refused.expect_error(409, "conflict");
}

#[tokio::test]
async fn a_body_has_at_most_16_mib() {
    let mock = start().await;
    let pets = |length: usize| {
        let name = "x".repeat(length);
        format!("[{{\"name\": \"{name}\", \"categoryId\": 7}}]")
    };
    let seeded = send(&mock, Method::POST, "/_mock/seed", &pets(2_000_000)).await;
    assert_eq!(seeded.status, 204);
    let snapshot = mock.get("/_mock/snapshot").await.body;
    let restored = send(&mock, Method::PUT, "/_mock/snapshot", &snapshot).await;
    assert_eq!(restored.status, 204);
    let refused = send(&mock, Method::POST, "/_mock/seed", &pets(17 << 20)).await;
    refused.expect_error(413, "payload_too_large");
}

#[tokio::test]
async fn pets_are_added_and_removed_without_a_key() {
    let mock = start().await;
    let added = send(&mock, Method::POST, "/_mock/pets", REX).await;
    let rex = json!({"id": 26, "name": "Rex", "categoryId": 7});
    assert_eq!((added.status, added.json()), (201, rex.clone()));
    assert_eq!(mock.get("/v1/pets/26").await.json(), rex);
    let twin = REX.replace('{', "{\"id\": 26, ");
    send(&mock, Method::POST, "/_mock/pets", &twin)
        .await
        .expect_error(409, "conflict");
    for (path, status) in [
        ("/_mock/pets/26", 204),
        ("/_mock/pets/26", 404),
        ("/_mock/pets/x", 404),
        ("/_mock/pets", 204),
    ] {
        let removed = send(&mock, Method::DELETE, path, "").await;
        assert_eq!(removed.status, status, "{path}");
    }
    assert_eq!(mock.get("/_mock/pets").await.json()["total"], 0);
    for body in [
        "",
        r#"{"name": "Rex"}"#,
        r#"{"name": "Rex", "categoryId": 7, "tag": 1}"#,
    ] {
        send(&mock, Method::POST, "/_mock/pets", body)
            .await
            .expect_error(400, "invalid_body");
    }
}

#[tokio::test]
async fn a_fault_for_an_unknown_key_is_refused() {
    let mock = start().await;
    let fault = |key: &str| format!(r#"{{"key": "{key}", "effect": {{"status": 503}}}}"#);
    let set = send(&mock, Method::POST, "/_mock/faults", &fault("free-key")).await;
    assert_eq!(set.status, 201);
    let refused = send(&mock, Method::POST, "/_mock/faults", &fault("s3cr3t")).await;
    refused.expect_error(400, "invalid_body");
    let message = refused.message();
    assert!(
        message.contains("a key that this server does not have") && !message.contains("s3cr3t"),
        "{message}"
    );
}
