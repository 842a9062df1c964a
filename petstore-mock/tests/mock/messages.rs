//! Tests of requests that violate HTTP, and of unread bodies.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::start;

const KEY: &str = "Authorization: Bearer enterprise-key\r\n";

#[tokio::test]
async fn a_request_names_its_host_once() {
    let mock = start().await;
    for (version, hosts, status) in [
        ("1.1", "", 400),
        ("1.1", "Host: a\r\nHost: a\r\n", 400),
        ("1.1", "Host: a/b\r\n", 400),
        ("1.1", "Host: u@a\r\n", 400),
        ("1.1", "Host: a b\r\n", 400),
        ("1.0", "Host: a\r\nHost: b\r\n", 400),
        ("1.1", "Host:\r\n", 200),
        ("1.1", "Host: [::1]:4010\r\n", 200),
        ("1.1", "Host: a_b.example:4010\r\n", 200),
        ("1.0", "", 200),
    ] {
        let head = format!("GET /v1/pets HTTP/{version}\r\n{hosts}{KEY}Connection: close\r\n\r\n");
        let reply = mock.raw(head.as_bytes()).await;
        assert_eq!(reply.status, status, "{version} {hosts}: {}", reply.body);
        if status == 400 {
            reply.expect_error(400, "bad_request");
            assert!(reply.message().contains("Host"), "{}", reply.message());
            assert_eq!((reply.header("connection"), reply.rate().0), ("close", 60));
        }
    }
}

#[tokio::test]
async fn a_coding_that_can_not_be_undone_is_not_implemented() {
    let mock = start().await;
    let post = async |coding: &str| {
        let body = r#"{"name":"Rex","categoryId":7}"#;
        let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let head = "POST /v1/pets HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
        let head = format!("{head}{KEY}{coding}Connection: close\r\n\r\n");
        mock.raw(format!("{head}{chunk}").as_bytes()).await
    };
    for coding in [
        "gzip, chunked",
        "gzip\r\nTransfer-Encoding: chunked",
        "chunked, chunked",
        "chunked\r\nTransfer-Encoding: chunked",
    ] {
        let reply = post(&format!("Transfer-Encoding: {coding}\r\n")).await;
        reply.expect_error(501, "not_implemented");
        assert_eq!(reply.header("connection"), "close");
    }
    assert_eq!(post("Transfer-Encoding: Chunked\r\n").await.status, 201);
    assert_eq!(mock.server.pets().len(), 26);
}

#[tokio::test]
async fn a_client_without_a_100_gets_connection_close() {
    let mock = start().await;
    for (key, status) in [("nobody's", "401"), ("enterprise-key", "100")] {
        let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
        let head = format!(
            "POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: 29\r\nExpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut began = [0; 12];
        stream.read_exact(&mut began).await.unwrap();
        assert_eq!(&began[9..], status.as_bytes());
        if status == "401" {
            let mut rest = String::new();
            stream.shutdown().await.unwrap();
            stream.read_to_string(&mut rest).await.unwrap();
            assert!(rest.contains("\r\nconnection: close\r\n"), "{rest}");
        }
    }
}
