//! The mock's own paths.

use std::net::{Ipv4Addr, UdpSocket};

use reqwest::Method;
use serde_json::json;

use super::support::{Mock, NOW, Reply, client, reply, start, start_with};

async fn advance(mock: &Mock, body: &'static str) -> Reply {
    reply(mock.request(Method::POST, "/_mock/clock/advance").body(body)).await
}

#[tokio::test]
async fn health_needs_no_key_and_has_no_quota() {
    let mock = start().await;
    for _ in 0..100 {
        let health = reply(mock.request(Method::GET, "/_mock/health")).await;
        assert_eq!((health.status, health.json()), (200, json!({"status": "ok"})));
        assert_eq!(health.header("x-ratelimit-limit"), "-");
    }
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 59);
}

#[tokio::test]
async fn the_clock_moves_on_request() {
    let mock = start().await;
    let moved = advance(&mock, r#"{"seconds": 60}"#).await;
    assert_eq!(moved.status, 200);
    let expected = json!({"epochSeconds": NOW + 60, "date": "Thu, 01 Jan 2026 00:01:10 GMT"});
    assert_eq!(moved.json(), expected);
    assert_eq!(mock.get("/").await.header("date"), "Thu, 01 Jan 2026 00:01:10 GMT");
    for _ in 0..2 {
        assert_eq!(advance(&mock, r#"{"seconds": 0.5}"#).await.status, 200);
    }
    assert_eq!(advance(&mock, r#"{"seconds": 0}"#).await.json()["epochSeconds"], NOW + 61);
}

#[tokio::test]
async fn a_step_that_makes_no_sense_is_400_and_moves_nothing() {
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
    assert_eq!(mock.get("/").await.header("date"), "Thu, 01 Jan 2026 00:00:10 GMT");
}

#[tokio::test]
async fn a_page_of_another_site_can_not_move_the_clock() {
    let mock = start().await;
    let from = |origin: &str| {
        let request = mock.request(Method::POST, "/_mock/clock/advance");
        reply(request.header("origin", origin).body(r#"{"seconds": 60}"#))
    };
    for origin in ["https://evil.example", "null", "http://localhost"] {
        from(origin).await.expect_error(404, "route_not_found");
    }
    assert_eq!(from(mock.server.origin()).await.status, 200);
}

#[tokio::test]
async fn from_another_machine_only_the_health_is_there() {
    // The machine's own address in its network stands in for another machine's.
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    if probe.connect("192.0.2.1:9").is_err() {
        return;
    }
    let outside = probe.local_addr().unwrap().ip();
    let mock = start_with(|builder| builder.addr(Ipv4Addr::UNSPECIFIED.into())).await;
    let origin = format!("http://{outside}:{}", mock.server.addr().port());
    let health = reply(client().get(format!("{origin}/_mock/health"))).await;
    assert_eq!(health.status, 200);
    let url = format!("{origin}/_mock/clock/advance");
    let step = client().post(&url).body(r#"{"seconds": 60}"#);
    reply(step).await.expect_error(404, "route_not_found");
    reply(client().get(&url)).await.expect_error(404, "route_not_found");
}
