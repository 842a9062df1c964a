//! Tests of requests, events and the report under `/_mock`.

use petstore_mock::Plan;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::support::{Mock, REX, start};

/// A time limit that even a slow machine does not exceed.
const LONG: Duration = Duration::from_secs(60);

async fn numbers(mock: &Mock, query: &str) -> Vec<u64> {
    let found = mock.get(&format!("/_mock/requests{query}")).await.json();
    let found = found.as_array().unwrap().iter();
    found.map(|it| it["number"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn requests_are_filtered_by_parameters() {
    let mock = start().await;
    mock.get("/v1/pets?limit=1").await;
    mock.get_as("free-key", "/v1/pets/99").await;
    mock.post(REX).await;
    mock.get("/v1/nowhere").await;
    for (query, expected) in [
        ("", &[1, 2, 3, 4][..]),
        ("?after=2", &[3, 4]),
        ("?limit=1", &[4]),
        ("?operation=getPet", &[2]),
        ("?status=404", &[2, 4]),
        ("?method=POST", &[3]),
        ("?path=/v1/pets", &[1, 3]),
        // A key is selected by its number.
        ("?key=1&status=404", &[2]),
    ] {
        assert_eq!(numbers(&mock, query).await, expected, "{query}");
    }
    for query in ["limit=x", "operation=nap", "limits=5"] {
        let reply = mock.get(&format!("/_mock/requests?{query}")).await;
        reply.expect_error(400, "invalid_parameter");
    }
    mock.change("DELETE /_mock/requests", "").await;
    assert_eq!(numbers(&mock, "").await, [0_u64; 0]);
}

/// Reads events until one holds this text.
async fn read_until(request: RequestBuilder, text: &str, act: impl AsyncFnOnce()) -> String {
    let mut response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    act().await;
    let mut seen = String::new();
    let read = async {
        while !seen.contains(text) {
            let chunk = response.chunk().await.unwrap();
            seen.push_str(std::str::from_utf8(&chunk.expect("the stream ended")).unwrap());
        }
    };
    // The stream itself does not end: it has a comment every 15 s.
    timeout(LONG, read).await.unwrap();
    seen
}

#[tokio::test]
async fn events_tell_of_exchanges_as_they_come() {
    let mock = start().await;
    mock.get("/v1/pets").await;
    let events = mock.request(Method::GET, "/_mock/events");
    let seen = read_until(events, "\"listOrders\"", async || {
        mock.get_as("free-key", "/v1/store/orders").await;
    })
    .await;
    assert!(!seen.contains("listPets"), "it came before: {seen}");
    let (_, data) = seen.split_once("event: exchange\ndata: ").unwrap();
    let exchange: Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&exchange["number"], &exchange["status"]),
        (&json!(2), &json!(200))
    );
}

#[tokio::test]
async fn events_tell_of_changes() {
    let mock = start().await;
    let server = &mock.server;
    let key = server.key(Plan::Free);
    let changes: [&dyn Fn(); 6] = [
        &|| server.clock().advance(Duration::from_secs(1)),
        &|| server.pets().clear().unwrap(),
        &|| key.ban(Duration::from_secs(1)),
        &|| drop(server.faults().on(..).status(500).optional()),
        &|| server.reset().unwrap(),
        &|| server.restore(&server.snapshot()).unwrap(),
    ];
    for change in changes {
        let events = mock.request(Method::GET, "/_mock/events");
        read_until(events, "event: changed\ndata: {}\n\n", async || change()).await;
    }
}

#[tokio::test]
async fn who_listens_to_events_does_not_hold_up_the_end() {
    let mock = start().await;
    let events = mock.request(Method::GET, "/_mock/events");
    let mut events = events.send().await.unwrap();
    mock.stop().await;
    assert_eq!(events.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn the_report_comes_in_every_format() {
    let mock = start().await;
    mock.get("/v1/pets?k=free-key").await;
    for (end, media_type, holds) in [
        (".json", "application/json", "\"compliant\":false"),
        (".txt", "text/plain; charset=utf-8", "compliance: "),
        (".xml", "application/xml", "<testsuite"),
    ] {
        let report = mock.get(&format!("/_mock/report{end}")).await;
        assert_eq!(report.header("content-type"), media_type);
        for part in [holds, "a key of this server"] {
            assert!(report.body.contains(part), "{}", report.body);
        }
    }
    for (line, is_compliant) in [("/_mock/requests", false), ("/_mock/report", true)] {
        mock.send(&format!("DELETE {line}"), "").await;
        let report = mock.get("/_mock/report").await.json();
        assert_eq!(report["compliant"], is_compliant);
    }
}
