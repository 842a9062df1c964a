//! Every operation as it is sent: method, path, query, headers and body.

use petstore_client::{Client, ErrorKind, Method, NewPet, PetStatus};

use super::kit::{KEY, REX, answer, client, key};
use super::wire::{Seen, Wire};

fn server(status: u16, body: &str) -> (Wire, Client) {
    let server = Wire::of(vec![answer(status, &[], body)]);
    let client = client(&server.base());
    (server, client)
}

/// Returns the only request that was sent.
fn sent(server: &Wire) -> Seen {
    let mut all = server.seen();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Checks the first line, and what every request carries.
fn assert_sent(request: &Seen, line: &str) {
    assert_eq!(request.line, format!("{line} HTTP/1.1"));
    assert_eq!(request.header("authorization"), Some(&*format!("Bearer {}", key())));
    assert_eq!(request.header("accept"), Some("application/json"));
    assert!(request.header("user-agent").unwrap().starts_with("petstore-client/"));
    assert!(!request.line.contains(KEY));
}

#[tokio::test]
async fn lists_pets_with_what_was_asked_and_nothing_more() {
    let (server, client) = server(200, "[]");
    let list = client.pets().list();
    list.clone().await.unwrap();
    list.clone().limit(100).status(PetStatus::Sold).await.unwrap();
    // A status that the specification does not list is encoded.
    list.status(PetStatus::from("on loan&limit=1#é")).await.unwrap();
    let lines = [
        "GET /v1/pets",
        "GET /v1/pets?limit=100&status=sold",
        "GET /v1/pets?status=on+loan%26limit%3D1%23%C3%A9",
    ];
    for (request, line) in server.seen().iter().zip(lines) {
        assert_sent(request, line);
        assert!(request.header("content-type").is_none() && request.body.is_empty());
    }
}

#[tokio::test]
async fn refuses_a_limit_out_of_range_without_a_request() {
    let (server, client) = server(200, "[]");
    for limit in [0, 101, u32::MAX] {
        let error = client.pets().list().limit(limit).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
        assert!(error.to_string().contains("from 1 to 100"), "{error}");
        assert_eq!((error.attempts(), error.status()), (0, None));
        assert!(!error.may_have_been_processed());
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn creates_a_pet_from_its_json() {
    let (server, client) = server(201, REX);
    let new = NewPet::new("Rex", 7).with_status(PetStatus::Available);
    client.pets().create(&new).await.unwrap();
    let request = sent(&server);
    assert_sent(&request, "POST /v1/pets");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.body, br#"{"name":"Rex","categoryId":7,"status":"available"}"#);
}

#[tokio::test]
#[expect(deprecated, reason = "it is part of the contract")]
async fn gets_a_pet_by_any_int64_and_the_orders() {
    for id in [i64::MIN, -1, 0, i64::MAX] {
        let (server, client) = server(200, REX);
        client.pets().get(id).await.unwrap();
        assert_sent(&sent(&server), &format!("GET /v1/pets/{id}"));
    }
    let (server, client) = server(200, "[]");
    client.store().orders().await.unwrap();
    assert_sent(&sent(&server), "GET /v1/store/orders");
}

#[tokio::test]
async fn sends_a_raw_request_as_it_was_built() {
    let (server, client) = server(200, "{}");
    let request = client
        .request(Method::PUT, "pets/1/photo?size=l")
        .query("tag", "a b&c")
        .header("X-Trace", "7")
        .header("Accept", "image/png")
        .body("image/png", "bytes");
    request.await.unwrap();
    let request = sent(&server);
    assert_eq!(request.line, "PUT /v1/pets/1/photo?size=l&tag=a+b%26c HTTP/1.1");
    for (name, value) in [("x-trace", "7"), ("accept", "image/png"), ("content-type", "image/png")]
    {
        assert_eq!(request.header(name), Some(value));
    }
    assert_eq!(request.body, b"bytes");
    client.request(Method::POST, "/x").json(&[1, 2]).await.unwrap();
    let json = server.seen().remove(1);
    assert_eq!(json.header("content-type"), Some("application/json"));
    assert_eq!(json.body, b"[1,2]");
}

#[tokio::test]
async fn refuses_a_raw_request_that_would_leave_the_base_or_break_its_framing() {
    let (server, client) = server(200, "{}");
    let get = |path| client.request(Method::GET, path);
    for request in [
        get("http://evil.example/"),
        get("//evil.example/"),
        get("/../../etc"),
        get("/%2e%2e/x"),
        get("/a#b"),
        get("/x").header("Authorization", "Bearer other"),
        get("/x").header("Host", "evil.example"),
        get("/x").header("Content-Length", "99"),
        get("/x").header("Transfer-Encoding", "chunked"),
        get("/x").header("Connection", "close"),
        get("/x").header("X-Bad", "a\r\nX-Injected: b"),
        get("/x").header("bad name", "a"),
        get("/x").body("text/plain\n", "a"),
    ] {
        let error = request.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
        assert!(error.to_string().starts_with("GET "), "{error}");
        assert_eq!(error.attempts(), 0);
    }
    assert_eq!(server.count(), 0);
}
