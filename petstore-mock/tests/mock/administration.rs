//! Tests of the paths of the administration.

use reqwest::Method;
use serde_json::json;

use super::support::{Mock, NOW, Reply, reply, start};

async fn advance(mock: &Mock, body: &'static str) -> Reply {
    reply(
        mock.request(Method::POST, "/_mock/clock/advance")
            .body(body),
    )
    .await
}

#[tokio::test]
async fn health_needs_no_key_and_has_no_quota() {
    let mock = start().await;
    for _ in 0..100 {
        let health = reply(mock.request(Method::GET, "/_mock/health")).await;
        assert_eq!(
            (health.status, health.json()),
            (200, json!({"status": "ok"}))
        );
        assert_eq!(health.header("x-ratelimit-limit"), "-");
    }
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 59);
}

#[tokio::test]
async fn the_clock_moves_on_request() {
    let mock = start().await;
    let moved = advance(&mock, r#"{"seconds": 60}"#).await;
    assert_eq!(moved.status, 200);
    let mut expected = json!({
        "now": (NOW + 60) as f64, "date": "Thu, 01 Jan 2026 00:01:10 GMT", "mode": "frozen", "rate": 0.0,
    });
    assert_eq!(moved.json(), expected);
    assert_eq!(
        mock.get("/").await.header("date"),
        "Thu, 01 Jan 2026 00:01:10 GMT"
    );
    for _ in 0..2 {
        assert_eq!(advance(&mock, r#"{"seconds": 0.5}"#).await.status, 200);
    }
    expected["now"] = json!((NOW + 61) as f64);
    expected["date"] = json!("Thu, 01 Jan 2026 00:01:11 GMT");
    assert_eq!(mock.get("/_mock/clock").await.json(), expected);
}

#[tokio::test]
async fn an_invalid_step_is_400_and_does_not_move_the_clock() {
    let mock = start().await;
    for body in [
        "",
        "{",
        "{}",
        "60",
        "[60]",
        r#"{"seconds": -1}"#,
        r#"{"seconds": -0.001}"#,
        r#"{"seconds": "60"}"#,
        r#"{"seconds": null}"#,
        r#"{"seconds": 1e12}"#,
        r#"{"seconds": 1e308}"#,
        r#"{"seconds": 1e999}"#,
        r#"{"seconds": NaN}"#,
        r#"{"minutes": 1}"#,
        r#"{"seconds": 1, "minutes": 1}"#,
    ] {
        advance(&mock, body).await.expect_error(400, "invalid_body");
    }
    assert_eq!(
        mock.get("/").await.header("date"),
        "Thu, 01 Jan 2026 00:00:10 GMT"
    );
}

#[tokio::test]
async fn the_clock_is_resumed_scaled_and_frozen_on_request() {
    let mock = start().await;
    let post =
        |path: &'static str, body: &'static str| reply(mock.request(Method::POST, path).body(body));
    let set = |reply: &Reply| (reply.json()["mode"].clone(), reply.json()["rate"].clone());
    let resumed = post("/_mock/clock/resume", "").await;
    assert_eq!(set(&resumed), (json!("running"), json!(1.0)));
    let scaled = post("/_mock/clock/scale", r#"{"rate": 1000000}"#).await;
    assert_eq!(set(&scaled), (json!("scaled"), json!(1e6)));
    let later = mock.get("/_mock/clock").await.json()["now"]
        .as_f64()
        .unwrap();
    assert!(later > scaled.json()["now"].as_f64().unwrap());
    let frozen = post("/_mock/clock/freeze", "").await;
    assert_eq!(set(&frozen), (json!("frozen"), json!(0.0)));
    assert_eq!(mock.get("/_mock/clock").await.json(), frozen.json());
    for (now, seconds) in [
        ("4000-01-01T00:00:00Z", 64_060_588_800.0),
        ("64060588860", 64_060_588_860.0),
    ] {
        let body = format!(r#"{{"now": "{now}"}}"#);
        let moved = reply(mock.request(Method::POST, "/_mock/clock/set").body(body)).await;
        assert_eq!(moved.json()["now"], seconds);
    }
    let back = post("/_mock/clock/set", r#"{"now": "2026-01-01"}"#).await;
    back.expect_error(409, "conflict");
    assert!(back.message().contains("--start-at"), "{}", back.message());
    post("/_mock/clock/set", r#"{"now": "soon"}"#)
        .await
        .expect_error(400, "invalid_body");
    for body in [
        r#"{"rate": -1}"#,
        r#"{"rate": 1e7}"#,
        r#"{"rate": "2"}"#,
        "{}",
        "",
    ] {
        post("/_mock/clock/scale", body)
            .await
            .expect_error(400, "invalid_body");
    }
}
