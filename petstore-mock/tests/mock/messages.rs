//! Tests of requests that violate HTTP, and of unread bodies.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::{REX, post_head, start};

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
        let rest = "Authorization: Bearer enterprise-key\r\nConnection: close\r\n\r\n";
        let head = format!("GET /v1/pets HTTP/{version}\r\n{hosts}{rest}");
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
    for (coding, status) in [
        ("gzip, chunked", 501),
        ("gzip\r\nTransfer-Encoding: chunked", 501),
        ("chunked, chunked", 501),
        ("chunked\r\nTransfer-Encoding: chunked", 501),
        ("Chunked", 201),
    ] {
        let head = post_head(&format!("Transfer-Encoding: {coding}\r\nConnection: close"));
        let post = format!("{head}{:x}\r\n{REX}\r\n0\r\n\r\n", REX.len());
        let reply = mock.raw(post.as_bytes()).await;
        assert_eq!(
            (reply.status, reply.header("connection")),
            (status, "close")
        );
    }
    assert_eq!(mock.server.pets().len(), 26);
}

#[tokio::test]
async fn a_client_without_a_100_gets_connection_close() {
    let mock = start().await;
    let head = post_head("Content-Length: 32\r\nExpect: 100-continue");
    for (key, status) in [("nobody's", "401"), ("free-key", "100")] {
        let mut stream = TcpStream::connect(mock.server.addr()).await.unwrap();
        let head = head.replace("free-key", key);
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
