//! Tests of the requests of every operation, and of raw requests.

use petstore_client::http::{HeaderName, HeaderValue, Method};
use petstore_client::{Client, ErrorKind, NewPet, Pet, PetStatus};
use serde_json::json;

use super::kit::{KEY, REX, answer, client, key, secs};
use super::wire::{Act, Seen, Wire};

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
    assert_eq!(
        request.header("authorization"),
        Some(&*format!("Bearer {}", key()))
    );
    assert_eq!(request.header("accept"), Some("application/json"));
    assert!(
        request
            .header("user-agent")
            .unwrap()
            .starts_with("petstore-client/")
    );
    assert!(!request.line.contains(KEY));
}

#[tokio::test]
async fn lists_pets_with_what_was_asked_and_nothing_more() {
    let (server, client) = server(200, "[]");
    let list = client.pets().list();
    list.clone().await.unwrap();
    list.clone()
        .limit(100)
        .status(PetStatus::Sold)
        .await
        .unwrap();
    // A status that the specification does not list is encoded.
    list.status(PetStatus::from("on loan&limit=1#é"))
        .await
        .unwrap();
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
    for limit in [0, 101] {
        let error = client.pets().list().limit(limit).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
        assert!(error.to_string().contains("from 1 to 100"), "{error}");
        let mut pages = client.pets().list().limit(limit).pages();
        pages.try_next().await.unwrap_err();
        assert!(pages.try_next().await.unwrap().is_none());
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn creates_a_pet_from_its_json() {
    let (server, client) = server(201, REX);
    let new = NewPet::new("Rex", 7).with_status(PetStatus::Available);
    client.pets().create(&new).await.unwrap();
    let twice = client.pets().create(&new.clone().with_field("name", "Max"));
    let error = twice.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    let request = sent(&server);
    assert_sent(&request, "POST /v1/pets");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(
        request.body,
        br#"{"name":"Rex","categoryId":7,"status":"available"}"#
    );
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
    assert_eq!(
        request.line,
        "PUT /v1/pets/1/photo?size=l&tag=a+b%26c HTTP/1.1"
    );
    for (name, value) in [
        ("x-trace", "7"),
        ("accept", "image/png"),
        ("content-type", "image/png"),
    ] {
        assert_eq!(request.header(name), Some(value));
    }
    assert_eq!(request.body, b"bytes");
}

#[tokio::test]
async fn a_raw_request_that_leaves_the_base_is_refused() {
    let (server, client) = server(200, "{}");
    let get = |path| client.request(Method::GET, path);
    for request in [
        get("http://evil.example/"),
        get("//evil.example/"),
        get("/../../etc"),
        get("/%2e%2e/x"),
        get("/a#b"),
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

#[tokio::test]
async fn takes_any_value_that_can_be_shown_and_decodes_into_any_type() {
    let server = Wire::start(|_| answer(200, &[], format!("[{REX}]")));
    let client = client(&server.base());
    let request = client
        .request(Method::GET, "/pets")
        .query("limit", 5)
        .query("all", true);
    let request = request
        .query("status", "sold")
        .query("q", "a b")
        .header("X-Number", 7);
    let name = HeaderName::from_static("x-name");
    let request = request.header(name, HeaderValue::from_static("v"));
    let pets = request.decode::<Vec<Pet>>().timeout(secs(9)).await.unwrap();
    assert_eq!((pets.len(), &*pets[0].name), (1, "Rex"));
    assert_eq!(
        server.targets(),
        ["/v1/pets?limit=5&all=true&status=sold&q=a+b"]
    );
    let wrong = client.request(Method::GET, "/pets").decode::<Pet>().await;
    assert_eq!(wrong.unwrap_err().operation(), Some("GET /pets"));
}

#[tokio::test]
async fn a_declared_idempotence_decides_what_is_sent_again() {
    let flaky = || Wire::of(vec![Act::Cut(Vec::new()), answer(200, &[], "{}")]);
    let server = flaky();
    let order = client(&server.base())
        .request(Method::POST, "/store/orders")
        .json(&json!({}));
    let order = order
        .header("Idempotency-Key", "1")
        .idempotent(true)
        .await
        .unwrap();
    assert_eq!((order.meta.attempts(), server.count()), (2, 2));

    let server = flaky();
    let get = client(&server.base())
        .request(Method::GET, "/draw")
        .idempotent(false);
    let error = get.await.unwrap_err();
    assert_eq!((error.kind(), server.count()), (ErrorKind::Interrupted, 1));
    assert!(
        error.to_string().contains("may have been processed"),
        "{error}"
    );
}

#[tokio::test]
async fn a_built_request_is_what_would_be_sent() {
    let server = Wire::start(|_| answer(200, &[], "{}"));
    let client = client(&server.base());
    let raw = client
        .request(Method::PATCH, "/pets/1?x=1")
        .json(&json!({"name": "Max"}));
    let built = raw.header("X-Trace", "7").build().unwrap();
    assert_eq!(
        (built.method(), built.uri().to_string()),
        (&Method::PATCH, server.base() + "/pets/1?x=1")
    );
    assert_eq!(built.body(), r#"{"name":"Max"}"#);
    assert_eq!(built.headers()["x-trace"], "7");
    assert_eq!(built.headers()["content-type"], "application/json");
    assert!(!built.headers().contains_key("authorization"));
    assert_eq!(server.count(), 0);

    let list = client.pets().list().limit(5).build().unwrap();
    assert_eq!(list.uri().to_string(), server.base() + "/pets?limit=5");
}
