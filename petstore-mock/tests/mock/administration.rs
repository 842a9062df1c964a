//! Tests of the paths under `/_mock` that change the mock: clock, keys, pets, seed, faults, reset and
//! snapshots.

use serde_json::{Value, json};

use super::support::{MINUTE_ENDS, Mock, NOW, REX, Reply, start};

#[tokio::test]
async fn health_needs_no_key_and_has_no_quota() {
    let mock = start().await;
    for _ in 0..70 {
        let health = mock.send("GET /_mock/health", "").await;
        assert_eq!(
            (health.status, health.json()),
            (200, json!({"status": "ok"}))
        );
        assert_eq!(health.header("x-ratelimit-limit"), "-");
    }
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 59);
}

#[tokio::test]
async fn an_invalid_body_is_400_and_changes_nothing() {
    let mock = start().await;
    let before = mock.get("/_mock/snapshot").await;
    for (line, bodies) in [
        (
            "POST /_mock/clock/advance",
            &[
                "",
                "{",
                "60",
                "[60]",
                r#"{"seconds": -0.001}"#,
                r#"{"seconds": "60"}"#,
                r#"{"seconds": null}"#,
                r#"{"seconds": 1e12}"#,
                r#"{"seconds": 1e999}"#,
                r#"{"seconds": 1, "minutes": 1}"#,
            ][..],
        ),
        ("POST /_mock/clock/set", &["", r#"{"now": "soon"}"#]),
        (
            "POST /_mock/clock/scale",
            &[
                "",
                "{}",
                r#"{"rate": -1}"#,
                r#"{"rate": 1e7}"#,
                r#"{"rate": "2"}"#,
            ],
        ),
        (
            "POST /_mock/keys",
            &[
                "",
                "{}",
                r#"{"plan": "gold"}"#,
                r#"{"plan": "free", "key": ""}"#,
                r#"{"plan": "free", "key": "a b"}"#,
                r#"{"plan": "free", "kay": "x"}"#,
                r#"{"plan": "free", "name": ""}"#,
                r#"{"plan": "free", "name": "a\nb"}"#,
                r#"{"plan": "free", "name": "…abcd"}"#,
                r#"{"plan": "free", "name": 7}"#,
            ],
        ),
        (
            "POST /_mock/seed",
            &["", "[", r#"[{"name": "Rex"}]"#, r#"{"pats": []}"#],
        ),
        (
            "POST /_mock/pets",
            &[
                "",
                r#"{"name": "Rex"}"#,
                r#"{"name": "Rex", "categoryId": 7, "tag": 1}"#,
            ],
        ),
        (
            "POST /_mock/faults",
            &["", "{}", r#"{"effect": {"nap": {}}}"#, r#"{"efect": {}}"#],
        ),
        ("PUT /_mock/snapshot", &["", "{}", "[]"]),
    ] {
        for body in bodies {
            let refused = mock.send(line, *body).await;
            assert_eq!(
                refused.error(),
                (400, "invalid_body".to_owned()),
                "{line} {body}"
            );
        }
    }
    assert_eq!(mock.get("/_mock/snapshot").await.body, before.body);
    let after = mock.get("/").await;
    assert_eq!(after.header("date"), "Thu, 01 Jan 2026 00:00:10 GMT");
}

#[tokio::test]
async fn what_conflicts_with_the_state_or_is_not_there_changes_nothing() {
    let mock = start().await;
    let before = mock.get("/_mock/snapshot").await;
    let taken = r#"{"plan": "free", "key": "free-key"}"#;
    let twins = format!("[{}, {0}]", REX.replace('{', "{\"id\": 40, "));
    let known = REX.replace('{', "{\"id\": 1, ");
    let other = before.body.replacen("\"version\":2", "\"version\":1", 1);
    for (line, body) in [
        ("POST /_mock/keys", taken),
        ("POST /_mock/seed", &twins),
        ("POST /_mock/pets", &known),
        ("PUT /_mock/snapshot", &other),
        ("POST /_mock/clock/set", r#"{"now": "2025-01-01"}"#),
    ] {
        let refused = mock.send(line, body.to_owned()).await;
        refused.expect_error(409, "conflict");
        assert!(!refused.body.contains("free-key"), "{}", refused.body);
    }
    for path in [
        "keys/99",
        "keys/x",
        "keys/99/ban",
        "pets/99",
        "pets/x",
        "faults/9",
    ] {
        let gone = mock.send(&format!("DELETE /_mock/{path}"), "").await;
        assert_eq!(gone.status, 404, "{path}");
    }
    assert_eq!(mock.get("/_mock/snapshot").await.body, before.body);
    assert_eq!(
        mock.get("/").await.header("date"),
        "Thu, 01 Jan 2026 00:00:10 GMT"
    );
}

#[tokio::test]
async fn the_clock_is_moved_frozen_scaled_and_resumed() {
    let mock = start().await;
    let moved = mock
        .send("POST /_mock/clock/advance", r#"{"seconds": 60.5}"#)
        .await;
    let expected = json!({
        "now": NOW as f64 + 60.5, "date": "Thu, 01 Jan 2026 00:01:10 GMT", "mode": "frozen",
        "rate": 0.0,
    });
    assert_eq!((moved.status, moved.json()), (200, expected.clone()));
    assert_eq!(mock.get("/_mock/clock").await.json(), expected);
    assert_eq!(
        mock.get("/").await.header("date"),
        "Thu, 01 Jan 2026 00:01:10 GMT"
    );
    let set = |reply: &Reply| (reply.json()["mode"].clone(), reply.json()["rate"].clone());
    let resumed = mock.send("POST /_mock/clock/resume", "").await;
    assert_eq!(set(&resumed), (json!("running"), json!(1.0)));
    let scaled = mock
        .send("POST /_mock/clock/scale", r#"{"rate": 1000000}"#)
        .await;
    assert_eq!(set(&scaled), (json!("scaled"), json!(1e6)));
    let now = |reply: &Reply| reply.json()["now"].as_f64().unwrap();
    assert!(now(&mock.get("/_mock/clock").await) > now(&scaled));
    let frozen = mock.send("POST /_mock/clock/freeze", "").await;
    assert_eq!(set(&frozen), (json!("frozen"), json!(0.0)));
    assert_eq!(mock.get("/_mock/clock").await.json(), frozen.json());
    for (to, seconds) in [
        ("4000-01-01T00:00:00Z", 64_060_588_800.0),
        ("64060588860", 64_060_588_860.0),
    ] {
        let body = format!(r#"{{"now": "{to}"}}"#);
        let moved = mock.send("POST /_mock/clock/set", body).await;
        assert_eq!(moved.json()["now"], seconds);
    }
    let back = mock
        .send("POST /_mock/clock/set", r#"{"now": "2026-01-01"}"#)
        .await;
    back.expect_error(409, "conflict");
    assert!(back.message().contains("--start-at"), "{}", back.message());
}

/// Returns the first key, `free-key`, from the list of keys.
async fn free(mock: &Mock) -> Value {
    mock.get("/_mock/keys").await.json()[0].clone()
}

#[tokio::test]
async fn keys_are_listed_with_their_usage() {
    let mock = start().await;
    for _ in 0..62 {
        mock.get_as("free-key", "/v1/pets").await;
    }
    let key = free(&mock).await;
    let minute = json!({"limit": 60, "used": 60, "remaining": 0, "reset": MINUTE_ENDS as f64});
    assert_eq!((&key["plan"], &key["minute"]), (&json!("free"), &minute));
    assert_eq!(
        (&key["day"]["used"], &key["day"]["remaining"]),
        (&json!(60), &json!(940))
    );
    let wait = (&key["retryAfterUntil"], &key["bannedUntil"]);
    assert_eq!(wait, (&json!(MINUTE_ENDS as f64), &Value::Null));
    for _ in 0..11 {
        mock.get_as("free-key", "/v1/pets").await;
    }
    assert_eq!(free(&mock).await["bannedUntil"], json!((NOW + 300) as f64));
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
    mock.send("DELETE /_mock/pets/26", "")
        .await
        .expect_status(204);
    mock.send("DELETE /_mock/pets/26", "")
        .await
        .expect_status(404);
    assert_eq!(ids("?limit=0").await, (vec![], 25));
    mock.send("DELETE /_mock/pets", "").await.expect_status(204);
    assert_eq!(ids("").await, (vec![], 0));

    let seed = r#"{"pets": [{"name": "Rex", "categoryId": 7, "id": 40}], "orders": [{"n": 1}]}"#;
    mock.send("POST /_mock/seed", seed).await.expect_status(204);
    assert_eq!(ids("").await, (vec![40], 1));
    assert_eq!(mock.get("/v1/store/orders").await.body, r#"[{"n":1}]"#);
}

#[tokio::test]
async fn a_body_has_at_most_16_mib() {
    let mock = start().await;
    let pets = |length: usize| {
        let name = "x".repeat(length);
        format!("[{{\"name\": \"{name}\", \"categoryId\": 7}}]")
    };
    mock.send("POST /_mock/seed", pets(2_000_000))
        .await
        .expect_status(204);
    let snapshot = mock.get("/_mock/snapshot").await.body;
    mock.send("PUT /_mock/snapshot", snapshot)
        .await
        .expect_status(204);
    let refused = mock.send("POST /_mock/seed", pets(17 << 20)).await;
    refused.expect_error(413, "payload_too_large");
}

#[tokio::test]
async fn a_reset_brings_back_all_but_the_time() {
    let mock = start().await;
    mock.post(REX).await;
    mock.advance(1);
    mock.send("POST /_mock/reset", "").await.expect_status(204);
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
    let snapshot = mock.get("/_mock/snapshot").await.body;
    assert!(!snapshot.contains("free-key"));
    mock.post(REX).await;
    mock.get_as("free-key", "/v1/pets").await;
    mock.send("PUT /_mock/snapshot", snapshot.clone())
        .await
        .expect_status(204);
    assert_eq!(mock.get("/_mock/snapshot").await.body, snapshot);
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 58);
    // In JSON Schema these are integers, and some programs write integers this way.
    let last_id = |number: &str| {
        let categories = snapshot.replace("\"categoryId\":3", "\"categoryId\":3.0");
        categories.replace("\"lastId\":25", &format!("\"lastId\":{number}"))
    };
    mock.send("PUT /_mock/snapshot", last_id("715.0"))
        .await
        .expect_status(204);
    let read_back = mock.get("/_mock/snapshot").await.json();
    assert_eq!(read_back["store"]["lastId"], 715);
    let refused = mock.send("PUT /_mock/snapshot", last_id("25.5")).await;
    refused.expect_error(400, "invalid_body");
    let ends = "\"bannedUntil\":{\"secs\":";
    let never = snapshot.replacen(ends, &format!("{ends}253402300800"), 1);
    let refused = mock.send("PUT /_mock/snapshot", never).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
}

#[tokio::test]
async fn faults_are_set_listed_and_removed() {
    let mock = start().await;
    let broken = r#"{"operation": "listPets", "when": {"first": 1}, "key": "enterprise-key",
        "effect": {"status": {"status": 503}}}"#;
    let set = mock.send("POST /_mock/faults", broken).await;
    let path = format!("DELETE /_mock/faults/{}", set.json()["id"]);
    assert_eq!(mock.get("/v1/pets").await.status, 503);
    assert_eq!(mock.get("/v1/pets").await.status, 200);
    let listed = mock.get("/_mock/faults").await;
    assert_eq!(listed.json()[0]["hits"], 1, "{}", listed.body);
    assert!(!listed.body.contains("enterprise-key"), "{}", listed.body);
    mock.send(&path, "").await.expect_status(204);
    mock.send(&path, "").await.expect_status(404);
    mock.send("POST /_mock/faults", broken)
        .await
        .expect_status(201);
    mock.send("DELETE /_mock/faults", "")
        .await
        .expect_status(204);
    assert_eq!(mock.get("/v1/pets").await.status, 200);
    let unknown = broken.replace("enterprise-key", "s3cr3t");
    let refused = mock.send("POST /_mock/faults", unknown).await;
    refused.expect_error(400, "invalid_body");
    let message = refused.message();
    assert!(
        message.contains("a key that this server does not have"),
        "{message}"
    );
    assert!(!message.contains("s3cr3t"), "{message}");
}
