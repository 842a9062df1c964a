//! Tests of the requests of every operation, and of raw requests.

use petstore_client::http::{HeaderName, HeaderValue, Method};
use petstore_client::{Client, ErrorKind, Pet, PetStatus};
use serde_json::json;

use super::kit::{REX, answer, key, secs, serve};
use super::wire::{Act, Wire};

/// Starts a server that always answers with this body, and a client of it.
fn server(body: &str) -> (Wire, Client) {
    serve(vec![answer(200, &[], body)])
}

#[tokio::test]
async fn lists_pets_with_what_was_asked_and_nothing_more() {
    let (server, client) = server("[]");
    let list = client.pets().list();
    list.clone().await.unwrap();
    let sold = list.clone().limit(100).status(PetStatus::Sold);
    sold.await.unwrap();
    // A status that the specification does not list is encoded.
    list.status("on loan&limit=1#é").await.unwrap();
    let lines = [
        "GET /v1/pets",
        "GET /v1/pets?limit=100&status=sold",
        "GET /v1/pets?status=on+loan%26limit%3D1%23%C3%A9",
    ];
    for (request, line) in server.seen().iter().zip(lines) {
        assert_eq!(request.line, format!("{line} HTTP/1.1"));
        let bearer = format!("Bearer {}", key());
        assert_eq!(request.header("authorization"), Some(&*bearer));
        assert_eq!(request.header("accept"), Some("application/json"));
        let agent = request.header("user-agent").unwrap();
        assert!(agent.starts_with("petstore-client/"), "{agent}");
        assert!(request.header("content-type").is_none() && request.body.is_empty());
    }
}

#[tokio::test]
async fn refuses_a_limit_out_of_range_without_a_request() {
    let (server, client) = server("[]");
    for limit in [0, 101] {
        let error = client.pets().list().limit(limit).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
        let mut pages = client.pets().list().limit(limit).pages();
        pages.try_next().await.unwrap_err();
        assert!(pages.try_next().await.unwrap().is_none());
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn sends_a_raw_request_as_it_was_built() {
    let (server, client) = server("{}");
    let request = client
        .request(Method::PUT, "pets/1/photo?size=l")
        .query("tag", "a b&c")
        .query("all", true)
        .header("X-Number", 7)
        .header(
            HeaderName::from_static("x-name"),
            HeaderValue::from_static("v"),
        )
        .header("Accept", "image/png")
        .body("image/png", "bytes");
    request.await.unwrap();
    let request = &server.seen()[0];
    let line = "PUT /v1/pets/1/photo?size=l&tag=a+b%26c&all=true HTTP/1.1";
    assert_eq!(request.line, line);
    for (name, value) in [
        ("x-number", "7"),
        ("x-name", "v"),
        ("accept", "image/png"),
        ("content-type", "image/png"),
    ] {
        assert_eq!(request.header(name), Some(value));
    }
    assert_eq!(request.body, b"bytes");
}

#[tokio::test]
async fn a_raw_request_that_leaves_the_base_is_refused() {
    let (server, client) = server("{}");
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
async fn a_raw_answer_is_decoded_into_any_type() {
    let (_server, client) = server(&format!("[{REX}]"));
    let get = || client.request(Method::GET, "/pets");
    let pets = get().decode::<Vec<Pet>>().timeout(secs(9)).await.unwrap();
    assert_eq!(pets[0].name, "Rex");
    let wrong = get().decode::<Pet>().await.unwrap_err();
    assert_eq!(wrong.operation(), Some("GET /pets"));
}

#[tokio::test]
async fn a_declared_idempotence_decides_what_is_sent_again() {
    let flaky = || serve(vec![Act::Cut(Vec::new()), answer(200, &[], "{}")]);
    let (server, client) = flaky();
    let order = client.request(Method::POST, "/store/orders");
    let order = order.header("Idempotency-Key", "1").idempotent(true);
    order.json(&json!({})).await.unwrap();
    assert_eq!(server.count(), 2);

    let (server, client) = flaky();
    let draw = client.request(Method::GET, "/draw").idempotent(false);
    let error = draw.await.unwrap_err();
    assert_eq!((error.kind(), server.count()), (ErrorKind::Interrupted, 1));
    let warning = "may have been processed";
    assert!(error.to_string().contains(warning), "{error}");
}

#[tokio::test]
async fn a_built_request_is_what_would_be_sent() {
    let (server, client) = server("{}");
    let raw = client.request(Method::PATCH, "/pets/1?x=1");
    let raw = raw.json(&json!({"name": "Max"})).header("X-Trace", "7");
    let built = raw.build().unwrap();
    assert_eq!(built.method(), Method::PATCH);
    assert_eq!(built.uri().to_string(), server.base() + "/pets/1?x=1");
    assert_eq!(built.body(), r#"{"name":"Max"}"#);
    assert_eq!(built.headers()["x-trace"], "7");
    assert_eq!(built.headers()["content-type"], "application/json");
    assert!(!built.headers().contains_key("authorization"));
    assert_eq!(server.count(), 0);
}
