//! Tests of protocols: HTTP/2 without TLS, HTTP/1.1, and neither.

use std::{io::Write as _, time::Duration};

use h2::client::SendRequest;
use petstore_mock::{Effect, Operation};
use reqwest::header::HeaderMap;
use tokio::{net::TcpStream, task::JoinHandle};

use super::support::{Mock, Reply, start};

/// An HTTP/2 connection to a mock, without TLS and without asking first.
pub(crate) struct Http2 {
    requests: SendRequest<std::io::Cursor<Vec<u8>>>,
    connection: JoinHandle<Result<(), h2::Error>>,
    /// The host and port that requests name.
    authority: String,
}

impl Http2 {
    pub(crate) async fn connect(mock: &Mock) -> Self {
        let stream = TcpStream::connect(mock.server.addr()).await.unwrap();
        let (requests, connection) = h2::client::Builder::new().handshake(stream).await.unwrap();
        Self {
            requests,
            connection: tokio::spawn(connection),
            authority: "mock".to_owned(),
        }
    }

    async fn ask(&self, method: &str, path: &str, headers: HeaderMap, body: Option<&str>) -> Reply {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.authority))
            .header("authorization", "Bearer enterprise-key");
        request.headers_mut().unwrap().extend(headers);
        let mut requests = self.requests.clone().ready().await.unwrap();
        let (answer, mut sender) = requests
            .send_request(request.body(()).unwrap(), body.is_none())
            .unwrap();
        if let Some(body) = body {
            sender
                .send_data(std::io::Cursor::new(body.into()), true)
                .unwrap();
        }
        let (head, mut body) = answer.await.unwrap().into_parts();
        let mut text = Vec::new();
        while let Some(bytes) = body.data().await {
            text.write_all(&bytes.unwrap()).unwrap();
        }
        let body = String::from_utf8(text).unwrap();
        Reply {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, HeaderMap::new(), None).await
    }
}

#[tokio::test]
async fn the_mocks_own_page_can_change_it_over_http_2() {
    let mock = start().await;
    let own = mock.server.addr().to_string();
    for (method, path, body, status) in [
        (
            "POST",
            "/_mock/clock/advance",
            Some(r#"{"seconds": 1}"#),
            200,
        ),
        ("PUT", "/_mock/keys/1/ban", Some(r#"{"seconds": 1}"#), 204),
        ("PATCH", "/_mock/keys/1", Some(r#"{"plan": "pro"}"#), 204),
        ("DELETE", "/_mock/faults", None, 204),
    ] {
        for (authority, origin, status) in [
            (&*own, format!("http://{own}"), status),
            (&own, "https://evil.example".to_owned(), 404),
            ("evil.example", "https://evil.example".to_owned(), 404),
            ("evil.example", format!("http://{own}"), 404),
        ] {
            let mut http2 = Http2::connect(&mock).await;
            authority.clone_into(&mut http2.authority);
            let header = ("origin".parse().unwrap(), origin.parse().unwrap());
            let reply = http2
                .ask(method, path, HeaderMap::from_iter([header]), body)
                .await;
            assert_eq!(
                reply.status, status,
                "{method} {authority} {origin}: {}",
                reply.body
            );
        }
    }
}

#[tokio::test]
async fn a_client_that_starts_with_http_2_gets_http_2() {
    let mock = start().await;
    let http2 = Http2::connect(&mock).await;
    let (pets, pet) = tokio::join!(http2.get("/v1/pets?limit=5"), http2.get("/v1/pets/1"));
    assert_eq!(
        (pets.status, pets.json().as_array().unwrap().len()),
        (200, 5)
    );
    assert_eq!(pets.header("date"), "Thu, 01 Jan 2026 00:00:10 GMT");
    assert_eq!((pet.status, pet.header("connection")), (200, "-"));
    let json = HeaderMap::from_iter([(
        "content-type".parse().unwrap(),
        "application/json".parse().unwrap(),
    )]);
    let added = http2
        .ask(
            "POST",
            "/v1/pets",
            json.clone(),
            Some(r#"{"name":"Rex","categoryId":7}"#),
        )
        .await;
    assert_eq!((added.status, added.rate().1), (201, 999_997));
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(1024 * 1024));
    let refused = http2.ask("POST", "/v1/pets", json, Some(&long)).await;
    refused.expect_error(413, "payload_too_large");
    assert_eq!(
        http2.get("/v1/pets/26").await.status,
        200,
        "the connection goes on"
    );
}

#[tokio::test]
async fn a_refused_head_over_http_2_has_a_length_and_no_body() {
    let mock = start().await;
    let key = mock.server.keys().get("enterprise-key").unwrap();
    key.ban(std::time::Duration::from_secs(60));
    let http2 = Http2::connect(&mock).await;
    let refused = http2.ask("HEAD", "/v1/pets", HeaderMap::new(), None).await;
    assert_eq!((refused.status, &*refused.body), (429, ""));
    let length: usize = refused.header("content-length").parse().unwrap();
    assert!(length > 0);
}

#[tokio::test]
async fn http_2_has_the_same_limit_of_header_fields() {
    let mock = start().await;
    let http2 = Http2::connect(&mock).await;
    let of_length = |length: usize| {
        let value = "x".repeat(length).parse().unwrap();
        HeaderMap::from_iter([("x-long".parse().unwrap(), value)])
    };
    for (length, status) in [(200_000, 200), (300_000, 431)] {
        let reply = http2.ask("GET", "/v1/pets", of_length(length), None).await;
        assert_eq!(reply.status, status);
    }
    assert_eq!(
        http2.get("/v1/pets/1").await.status,
        200,
        "the connection goes on"
    );
}

#[tokio::test]
async fn stopping_lets_a_request_over_http_2_finish() {
    let mock = start().await;
    let mut http2 = Http2::connect(&mock).await;
    let request = http::Request::post("http://mock/v1/pets")
        .header("authorization", "Bearer free-key")
        .header("content-type", "application/json");
    let (answer, mut body) = http2
        .requests
        .send_request(request.body(()).unwrap(), false)
        .unwrap();
    // An answer on the same connection proves that the request before it is in flight.
    http2.get("/_mock/health").await;
    let finish = async {
        tokio::task::yield_now().await;
        let text = r#"{"name":"Rex","categoryId":7}"#.as_bytes().to_vec();
        body.send_data(std::io::Cursor::new(text), true).unwrap();
        answer.await.unwrap().status()
    };
    let ((), status) = tokio::join!(mock.server.stop(), finish);
    assert_eq!(status, 201);
    assert!(
        http2.connection.await.unwrap().is_ok(),
        "the connection ended without an error"
    );
}

#[tokio::test]
async fn dropping_the_server_cuts_http_2_too() {
    let mock = start().await;
    let http2 = Http2::connect(&mock).await;
    http2.get("/_mock/health").await;
    drop(mock);
    let _ = http2.connection.await.unwrap();
    assert!(http2.requests.ready().await.is_err());
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
    let request =
        http::Request::get("http://mock/v1/pets").header("authorization", "Bearer free-key");
    let request = request.body(()).unwrap();
    let waits = http2.requests.send_request(request, true).unwrap();
    // An answer on the same connection proves that the request before it is in flight.
    http2.get("/_mock/health").await;
    drop((hang, mock, waits, http2));
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

#[tokio::test]
async fn a_good_request_is_answered_before_the_bad_one_behind_it() {
    let mock = start().await;
    let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
    let two =
        b"GET /_mock/health HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nContent-Length: x\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut stream, two)
        .await
        .unwrap();
    let mut answers = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answers)
        .await
        .unwrap();
    let (first, second) = answers.split_once("{\"status\":\"ok\"}").expect(&answers);
    assert!(first.starts_with("HTTP/1.1 200"), "{answers}");
    assert_eq!(Reply::parse(second).status, 400);
}
