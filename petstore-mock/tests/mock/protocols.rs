//! Tests of protocols: HTTP/2 without TLS, HTTP/1.1, and neither.

use std::{io::Cursor, time::Duration};

use h2::client::SendRequest;
use petstore_mock::{Effect, Operation};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN};
use tokio::{net::TcpStream, task::JoinHandle};

use super::support::{Mock, REX, Reply, start};

/// An HTTP/2 connection to a mock, without TLS and without asking first.
struct Http2 {
    requests: SendRequest<Cursor<Vec<u8>>>,
    connection: JoinHandle<Result<(), h2::Error>>,
    /// The host and port that requests name.
    authority: String,
}

impl Http2 {
    async fn connect(mock: &Mock) -> Self {
        let stream = TcpStream::connect(mock.server.addr()).await.unwrap();
        let handshake = h2::client::Builder::new().handshake(stream);
        let (requests, connection) = handshake.await.unwrap();
        Self {
            requests,
            connection: tokio::spawn(connection),
            authority: "mock".to_owned(),
        }
    }

    async fn ask(&self, line: &str, field: (HeaderName, &str), body: Option<&str>) -> Reply {
        let (method, path) = line.split_once(' ').unwrap();
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.authority))
            .header("authorization", "Bearer enterprise-key")
            .header(field.0, HeaderValue::from_str(field.1).unwrap());
        let mut requests = self.requests.clone().ready().await.unwrap();
        let request = request.body(()).unwrap();
        let (answer, mut sender) = requests.send_request(request, body.is_none()).unwrap();
        if let Some(body) = body {
            sender.send_data(Cursor::new(body.into()), true).unwrap();
        }
        let (head, mut body) = answer.await.unwrap().into_parts();
        let mut bytes = Vec::new();
        while let Some(more) = body.data().await {
            bytes.extend(more.unwrap());
        }
        Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body: String::from_utf8(bytes).unwrap(),
        }
    }

    async fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path}"), (CONTENT_TYPE, ""), None)
            .await
    }
}

#[tokio::test]
async fn the_mocks_own_page_can_change_it_over_http_2() {
    let mock = start().await;
    let own = mock.server.addr().to_string();
    let mut http2 = Http2::connect(&mock).await;
    let body = r#"{"seconds": 1}"#;
    for (authority, origin, status) in [
        (&*own, format!("http://{own}"), 200),
        (&own, "https://evil.example".to_owned(), 404),
        ("evil.example", "https://evil.example".to_owned(), 404),
        ("evil.example", format!("http://{own}"), 404),
    ] {
        authority.clone_into(&mut http2.authority);
        let from = (ORIGIN, &*origin);
        let reply = http2
            .ask("POST /_mock/clock/advance", from, Some(body))
            .await;
        assert_eq!(reply.status, status, "{authority} {origin}");
    }
}

#[tokio::test]
async fn a_client_that_starts_with_http_2_gets_http_2() {
    let mock = start().await;
    let http2 = Http2::connect(&mock).await;
    let (pets, pet) = tokio::join!(http2.get("/v1/pets?limit=5"), http2.get("/v1/pets/1"));
    assert_eq!((pets.status, pets.rate().1), (200, 999_999));
    assert_eq!(pets.header("date"), "Thu, 01 Jan 2026 00:00:10 GMT");
    assert_eq!((pet.status, pet.header("connection")), (200, "-"));
    let json = || (CONTENT_TYPE, "application/json");
    let added = http2.ask("POST /v1/pets", json(), Some(REX)).await;
    added.expect_status(201);
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(1024 * 1024));
    let refused = http2.ask("POST /v1/pets", json(), Some(&long)).await;
    refused.expect_error(413, "payload_too_large");
    // The same limit of header fields as over HTTP/1.1.
    for (length, status) in [(200_000, 200), (300_000, 431)] {
        let long = "x".repeat(length);
        let field = (HeaderName::from_static("x-long"), &*long);
        let reply = http2.ask("GET /v1/pets", field, None).await;
        assert_eq!(reply.status, status);
    }
    assert_eq!(
        http2.get("/v1/pets/26").await.status,
        200,
        "the connection goes on"
    );
    let key = mock.server.keys().get("enterprise-key").unwrap();
    key.ban(Duration::from_secs(60));
    let head = http2.ask("HEAD /v1/pets", json(), None).await;
    assert_eq!((head.status, &*head.body), (429, ""));
    assert_ne!(head.header("content-length"), "0");
}

#[tokio::test]
async fn stopping_lets_a_request_over_http_2_finish() {
    let mock = start().await;
    let mut http2 = Http2::connect(&mock).await;
    let request = http::Request::post("http://mock/v1/pets")
        .header("authorization", "Bearer free-key")
        .header("content-type", "application/json");
    let request = request.body(()).unwrap();
    let (answer, mut body) = http2.requests.send_request(request, false).unwrap();
    // An answer on the same connection proves that the request before it is in flight.
    http2.get("/_mock/health").await;
    let finish = async {
        tokio::task::yield_now().await;
        body.send_data(Cursor::new(REX.into()), true).unwrap();
        answer.await.unwrap().status()
    };
    let ((), status) = tokio::join!(mock.server.stop(), finish);
    assert_eq!(status, 201);
    let ended = http2.connection.await.unwrap();
    assert!(ended.is_ok(), "the connection ended without an error");
}

#[tokio::test]
async fn a_request_over_http_2_does_not_outlive_the_server() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let mock = start().await;
    let hang = mock.on(Operation::ListPets).apply(Effect::Hang {
        after_body_bytes: None,
    });
    let mut http2 = Http2::connect(&mock).await;
    let request = http::Request::get("http://mock/v1/pets");
    let request = request.header("authorization", "Bearer free-key");
    let request = request.body(()).unwrap();
    let waits = http2.requests.send_request(request, true).unwrap();
    // An answer on the same connection proves that the request before it is in flight.
    http2.get("/_mock/health").await;
    drop((hang, mock));
    let _ = http2.connection.await.unwrap();
    assert!(http2.requests.ready().await.is_err());
    drop(waits);
    let gone = async {
        while tasks() > before {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
    assert!(gone.is_ok(), "{} tasks are left", tasks() - before);
}

#[tokio::test]
async fn malformed_requests_are_refused_without_a_body() {
    let mock = start().await;
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(501));
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(3_000_000));
    let far = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000));
    for (request, status) in [
        ("HELO there\r\n\r\n", 400),
        ("\0\r\n\r\n", 400),
        ("GET / HTTP/3.0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\nno colon\r\n\r\n", 400),
        (&many, 431),
        (&long, 431),
        (&far, 414),
    ] {
        let reply = mock.raw(request.as_bytes()).await;
        assert_eq!((reply.status, &*reply.body), (status, ""));
    }
    assert_eq!(mock.get("/v1/pets").await.status, 200);
}
