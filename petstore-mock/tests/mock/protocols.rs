//! Tests of protocols: HTTP/2 without TLS, and malformed or hostile requests over HTTP/1.1.

use std::io::Cursor;

use h2::client::SendRequest;
use reqwest::header::{CONTENT_TYPE, HeaderName};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};

use super::support::{Mock, REX, Reply, post_head, start};

/// An HTTP/2 connection to a mock, without TLS and without asking first.
struct Http2 {
    requests: SendRequest<Cursor<Vec<u8>>>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    async fn connect(mock: &Mock) -> Self {
        let stream = TcpStream::connect(mock.server.addr()).await.unwrap();
        let handshake = h2::client::Builder::new().handshake(stream);
        let (requests, connection) = handshake.await.unwrap();
        Self {
            requests,
            connection: tokio::spawn(connection),
        }
    }

    async fn ask(&self, line: &str, field: (HeaderName, &str), body: Option<&str>) -> Reply {
        let (method, path) = line.split_once(' ').unwrap();
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://mock{path}"))
            .header("authorization", "Bearer enterprise-key")
            .header(field.0, field.1);
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
async fn a_client_that_starts_with_http_2_gets_http_2() {
    let mock = start().await;
    let http2 = Http2::connect(&mock).await;
    let (pets, pet) = tokio::join!(http2.get("/v1/pets?limit=5"), http2.get("/v1/pets/1"));
    assert_eq!(
        (pets.status, pets.rate().1, pet.status),
        (200, 999_999, 200)
    );
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
async fn malformed_requests_are_refused_without_a_body() {
    let mock = start().await;
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(3_000_000));
    let far = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000));
    for (request, status) in [
        ("HELO there\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
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
async fn a_hostile_request_is_one_request() {
    let mock = start().await;
    let next = "GET /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let chunked = format!("{:x}\r\n{REX}\r\n0\r\n\r\n", REX.len());
    let inner = format!("{:x}\r\n{chunked}\r\n0\r\n\r\n", chunked.len());
    let plain = "Content-Length: 32";
    for (fields, body, statuses) in [
        // Two lengths that differ, and codings that do not end with `chunked`, have no clear end.
        ("Content-Length: 32\r\nContent-Length: 33", REX, &[400][..]),
        ("Content-Length: 32, 33", REX, &[400]),
        ("Content-Length: +32", REX, &[400]),
        ("Transfer-Encoding: gzip", REX, &[400]),
        ("Transfer-Encoding: chunked, gzip", &chunked, &[400]),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            &chunked,
            &[400],
        ),
        // What could be read in two ways is read in one way, and ends the connection.
        (
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            &chunked,
            &[201],
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 3",
            &chunked,
            &[201],
        ),
        // What has a clear end is read to this end. The next request starts there.
        ("Content-Length: 32\r\nContent-Length: 32", REX, &[201, 401]),
        ("Transfer-Encoding: gzip, Chunked", &chunked, &[201, 401]),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            &inner,
            &[400, 401],
        ),
        (plain, REX, &[201, 401]),
        ("Content-Length: 32\r\nHost: y", REX, &[201, 401]),
    ] {
        let post = format!("{}{body}{next}", post_head(fields));
        let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
        stream.write_all(post.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let heads = answer.split("HTTP/1.1 ").skip(1);
        let got: Vec<u16> = heads.map(|head| head[..3].parse().unwrap()).collect();
        assert_eq!(got, statuses, "{fields}: {answer}");
    }
}

#[tokio::test]
async fn a_host_is_not_needed() {
    let mock = start().await;
    for hosts in ["", "Host: a\r\nHost: a\r\n", "Host: a b\r\n"] {
        let rest = "Authorization: Bearer free-key\r\nConnection: close\r\n\r\n";
        let head = format!("GET /v1/pets HTTP/1.1\r\n{hosts}{rest}");
        assert_eq!(mock.raw(head.as_bytes()).await.status, 200, "{hosts}");
        // The administration needs it, to refuse the pages of other sites.
        let head = format!("GET /_mock/keys HTTP/1.1\r\n{hosts}{rest}");
        mock.raw(head.as_bytes())
            .await
            .expect_error(404, "route_not_found");
    }
}
