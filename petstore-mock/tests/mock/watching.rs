//! Tests of requests, events and the report under `/_mock`.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::support::{Mock, REX, reply, start};

/// A time limit that even a slow machine does not exceed.
const LONG: Duration = Duration::from_secs(60);

/// Sends four requests to the service.
async fn some_requests(mock: &Mock) {
    mock.get("/v1/pets?limit=1").await;
    mock.get_as("free-key", "/v1/pets/99").await;
    mock.post(REX).await;
    mock.get("/v1/nowhere").await;
}

async fn numbers(mock: &Mock, query: &str) -> Vec<u64> {
    let found = mock.get(&format!("/_mock/requests{query}")).await.json();
    found
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["number"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn requests_are_filtered_by_parameters() {
    let mock = start().await;
    some_requests(&mock).await;
    for (query, expected) in [
        ("", &[1, 2, 3, 4][..]),
        ("?after=2", &[3, 4]),
        ("?limit=1", &[4]),
        ("?limit=0", &[]),
        ("?operation=getPet", &[2]),
        ("?status=404", &[2, 4]),
        ("?method=POST", &[3]),
        ("?path=/v1/pets", &[1, 3]),
        ("?key=1&status=404", &[2]),
        ("?key=9", &[]),
    ] {
        // A key is selected by its number.
        let free = mock.server.requests(..)[1].key.as_ref().unwrap().number();
        let query = query.replace("key=1", &format!("key={free}"));
        assert_eq!(numbers(&mock, &query).await, expected, "{query}");
    }
    for query in [
        "?limit=x",
        "?status=lost",
        "?operation=nap",
        "?limits=5",
        "?after=1&after=2",
        "?after=9223372036854775808",
    ] {
        let reply = mock.get(&format!("/_mock/requests{query}")).await;
        reply.expect_error(400, "invalid_parameter");
    }
    let gone = reply(mock.request(Method::DELETE, "/_mock/requests")).await;
    assert_eq!((gone.status, &*gone.body), (204, ""));
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
async fn events_tell_of_exchanges_and_changes_as_they_come() {
    let mock = start().await;
    mock.get("/v1/pets").await;
    let events = || mock.request(Method::GET, "/_mock/events");
    let seen = read_until(events(), "\"clock\"", async || {
        mock.get_as("free-key", "/v1/store/orders").await;
        reply(
            mock.request(Method::POST, "/_mock/clock/advance")
                .body(r#"{"seconds": 1}"#),
        )
        .await;
    })
    .await;
    assert!(!seen.contains("listPets"), "it came before: {seen}");
    assert!(seen.contains("event: exchange\nid: 2\n"), "{seen}");
    assert!(
        seen.contains("event: changed\ndata: {\"what\":\"clock\"}\n\n"),
        "{seen}"
    );
    let data = seen
        .lines()
        .find_map(|line| line.strip_prefix("data: {\"number\""))
        .unwrap();
    let exchange: Value = serde_json::from_str(&format!("{{\"number\"{data}")).unwrap();
    assert_eq!(
        (&exchange["operation"], &exchange["status"]),
        (&json!("listOrders"), &json!(200))
    );
    // A client that reconnects gets the events that it has missed.
    mock.get("/v1/pets/1").await;
    let again = events().header("last-event-id", "1");
    let seen = read_until(again, "id: 3\n", async || {}).await;
    assert!(
        seen.contains("id: 2\n") && !seen.contains("id: 1\n"),
        "{seen}"
    );
}

#[tokio::test]
async fn events_include_changes_by_the_test() {
    let mock = start().await;
    let server = &mock.server;
    let key = server.key(petstore_mock::Plan::Free);
    let changes: [(&str, &dyn Fn()); 9] = [
        ("clock", &|| server.clock().advance(Duration::from_secs(1))),
        ("pets", &|| {
            drop(server.pets().insert(petstore_mock::SeedPet::new("Rex", 7)));
        }),
        ("keys", &|| key.ban(Duration::from_secs(1))),
        ("pets", &|| key.reset()),
        ("faults", &|| {
            assert_ne!(server.faults().on_all().reset().detach(), 0);
        }),
        ("keys", &|| {
            let _key = server.key(petstore_mock::Plan::Business);
        }),
        ("keys", &|| server.reset().unwrap()),
        ("journal", &|| server.reset().unwrap()),
        ("pets", &|| server.restore(&server.snapshot()).unwrap()),
    ];
    for (what, change) in changes {
        let events = mock.request(Method::GET, "/_mock/events");
        read_until(events, &format!("{{\"what\":\"{what}\"}}"), async || {
            change();
        })
        .await;
    }
}

#[tokio::test]
async fn who_listens_to_events_does_not_hold_up_the_end() {
    let mock = start().await;
    let mut events = mock
        .request(Method::GET, "/_mock/events")
        .send()
        .await
        .unwrap();
    let stopped = timeout(Duration::from_secs(4), mock.server.stop()).await;
    assert!(stopped.is_ok(), "the stop waited for the event stream");
    assert_eq!(events.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn the_report_comes_in_every_format() {
    let mock = start().await;
    mock.get("/v1/pets?k=free-key").await;
    for (end, media_type, holds) in [
        ("json", "application/json", "\"compliant\":false"),
        ("txt", "text/plain; charset=utf-8", "compliance: "),
        ("xml", "application/xml", "<testsuite"),
    ] {
        let named = mock.get(&format!("/_mock/report.{end}")).await;
        assert_eq!(named.header("content-type"), media_type);
        assert!(
            named.body.contains(holds) && named.body.contains("a key of this server"),
            "{}",
            named.body
        );
    }
    assert_eq!(
        mock.get("/_mock/report").await.header("content-type"),
        "application/json"
    );
    reply(mock.request(Method::DELETE, "/_mock/requests")).await;
    assert_eq!(mock.get("/_mock/report").await.json()["compliant"], false);
    reply(mock.request(Method::DELETE, "/_mock/report")).await;
    assert_eq!(mock.get("/_mock/report").await.json()["compliant"], true);
}

#[tokio::test]
async fn faults_are_set_listed_and_removed_on_request() {
    let mock = start().await;
    let set = |body: &'static str| reply(mock.request(Method::POST, "/_mock/faults").body(body));
    let broken = r#"{"operation": "listPets", "when": {"first": 1}, "key": "enterprise-key",
        "effect": {"status": {"status": 503}}}"#;
    let id = set(broken).await.json()["id"].as_u64().unwrap();
    assert_eq!(mock.get("/v1/pets").await.status, 503);
    assert_eq!(mock.get("/v1/pets").await.status, 200);
    let listed = mock.get("/_mock/faults").await;
    assert_eq!(listed.json()[0]["hits"], 1, "{}", listed.body);
    assert!(!listed.body.contains("enterprise-key"), "{}", listed.body);
    let remove = |path: String| reply(mock.request(Method::DELETE, &path));
    assert_eq!(remove(format!("/_mock/faults/{id}")).await.status, 204);
    remove(format!("/_mock/faults/{id}"))
        .await
        .expect_error(404, "route_not_found");
    set(broken).await;
    assert_eq!(remove("/_mock/faults".to_owned()).await.status, 204);
    assert_eq!(mock.get("/v1/pets").await.status, 200);
    for body in ["", "{}", r#"{"effect": {"nap": {}}}"#, r#"{"efect": {}}"#] {
        set(body).await.expect_error(400, "invalid_body");
    }
}
