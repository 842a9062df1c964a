//! Every operation as it is sent: method, path, query, headers and body.

use petstore_client::{ErrorKind, Method, NewPet, PetStatus};
use wiremock::{Mock, MockServer, Request, ResponseTemplate, matchers::any};

use super::kit::{KEY, REX, base, client, key};

async fn server(status: u16, body: &str) -> MockServer {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(status).set_body_raw(body, "application/json");
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

async fn sent(server: &MockServer) -> Request {
    let mut all = server.received_requests().await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    let mut values = request.headers.get_all(name).iter();
    let value = values.next().map(|value| value.to_str().unwrap());
    assert_eq!(values.next(), None, "{name} came twice");
    value
}

fn assert_signed(request: &Request) {
    assert_eq!(header(request, "authorization"), Some(&*format!("Bearer {}", key())));
    assert_eq!(header(request, "accept"), Some("application/json"));
    assert!(header(request, "user-agent").unwrap().starts_with("petstore-client/"));
    assert!(!request.url.as_str().contains(KEY));
}

#[tokio::test]
async fn lists_pets_with_what_was_asked_and_nothing_more() {
    let server = server(200, "[]").await;
    client(&base(&server)).pets().list().send().await.unwrap();
    let request = sent(&server).await;
    assert_eq!((request.method.as_str(), request.url.path()), ("GET", "/v1/pets"));
    assert_eq!(request.url.query(), None);
    assert_eq!(header(&request, "content-type"), None);
    assert!(request.body.is_empty());
    assert_signed(&request);
}

#[tokio::test]
async fn lists_pets_with_limit_and_status() {
    let server = server(200, "[]").await;
    let client = client(&base(&server));
    client.pets().list().limit(100).status(PetStatus::Sold).send().await.unwrap();
    assert_eq!(sent(&server).await.url.query(), Some("limit=100&status=sold"));
}

#[tokio::test]
async fn encodes_a_status_that_the_specification_does_not_list() {
    let server = server(200, "[]").await;
    let odd = PetStatus::from("on loan&limit=1#é");
    client(&base(&server)).pets().list().status(odd).send().await.unwrap();
    let url = sent(&server).await.url;
    assert_eq!(url.query(), Some("status=on+loan%26limit%3D1%23%C3%A9"));
}

#[tokio::test]
async fn refuses_a_limit_out_of_range_without_a_request() {
    let server = server(200, "[]").await;
    for limit in [0, 101, u32::MAX] {
        let error = client(&base(&server)).pets().list().limit(limit).send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
        assert!(error.to_string().contains("from 1 to 100"), "{error}");
        assert_eq!((error.attempts(), error.status()), (0, None));
        assert!(!error.may_have_been_processed());
    }
    assert!(server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn creates_a_pet_from_its_json() {
    let server = server(201, REX).await;
    let new = NewPet::new("Rex", 7).with_status(PetStatus::Available);
    client(&base(&server)).pets().create(&new).await.unwrap();
    let request = sent(&server).await;
    assert_eq!((request.method.as_str(), request.url.path()), ("POST", "/v1/pets"));
    assert_eq!(header(&request, "content-type"), Some("application/json"));
    let body: serde_json::Value = request.body_json().unwrap();
    let expected = serde_json::json!({"name": "Rex", "categoryId": 7, "status": "available"});
    assert_eq!(body, expected);
    assert_signed(&request);
}

#[tokio::test]
#[expect(deprecated, reason = "it is part of the contract")]
async fn gets_a_pet_by_any_int64() {
    for id in [i64::MIN, -1, 0, i64::MAX] {
        let server = server(200, REX).await;
        client(&base(&server)).pets().get(id).await.unwrap();
        let request = sent(&server).await;
        assert_eq!((request.method.as_str(), request.url.query()), ("GET", None));
        assert_eq!(request.url.path(), format!("/v1/pets/{id}"));
        assert_signed(&request);
    }
}

#[tokio::test]
async fn gets_the_orders() {
    let server = server(200, "[]").await;
    client(&base(&server)).store().orders().await.unwrap();
    let request = sent(&server).await;
    assert_eq!((request.method.as_str(), request.url.path()), ("GET", "/v1/store/orders"));
    assert_signed(&request);
}

#[tokio::test]
async fn sends_a_raw_request_as_it_was_built() {
    let server = server(200, "{}").await;
    let client = client(&base(&server));
    let request = client
        .request(Method::PUT, "pets/1/photo?size=l")
        .query("tag", "a b&c")
        .header("X-Trace", "7")
        .header("Accept", "image/png")
        .body("image/png", "bytes");
    request.send().await.unwrap();
    let request = sent(&server).await;
    assert_eq!((request.method.as_str(), request.url.path()), ("PUT", "/v1/pets/1/photo"));
    assert_eq!(request.url.query(), Some("size=l&tag=a+b%26c"));
    assert_eq!(header(&request, "x-trace"), Some("7"));
    assert_eq!(header(&request, "accept"), Some("image/png"));
    assert_eq!(header(&request, "content-type"), Some("image/png"));
    assert_eq!(request.body, b"bytes");
}

#[tokio::test]
async fn sends_raw_json_as_json() {
    let server = server(200, "{}").await;
    let client = client(&base(&server));
    client.request(Method::POST, "/x").json(&[1, 2]).send().await.unwrap();
    let request = sent(&server).await;
    assert_eq!(header(&request, "content-type"), Some("application/json"));
    assert_eq!(request.body, b"[1,2]");
}

#[tokio::test]
async fn refuses_a_raw_request_that_would_leave_the_base_or_break_its_framing() {
    let server = server(200, "{}").await;
    let client = client(&base(&server));
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
        let error = request.send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
        assert!(error.to_string().starts_with("GET "), "{error}");
        assert_eq!(error.attempts(), 0);
    }
    assert!(server.received_requests().await.unwrap().is_empty());
}
