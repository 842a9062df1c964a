//! Bodies that are too large, connections that break, and servers that do not speak HTTP.

use petstore_client::limits::QuotaWindow;
use petstore_client::{ErrorKind, RequestOptions};

use crate::client::kit::{
    REX, answer, builder, client, create, http, list_error, list_meta, list_with, serve,
};
use crate::client::wire::{Act, Wire};

const MIB: usize = 1024 * 1024;

fn chunk(length: usize) -> Vec<u8> {
    let mut chunk = format!("{length:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + length, b' ');
    chunk.extend_from_slice(b"\r\n");
    chunk
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_body_of_the_default_cap_is_read_and_one_byte_more_is_not() {
    for (extra, fits) in [(0, true), (1, false)] {
        let body = format!("[]{}", " ".repeat(10 * MIB - 2 + extra));
        let server = Wire::of(vec![answer(200, &[], &body)]);
        match client(&server.base()).pets().list().await {
            Ok(pets) => assert!(fits && pets.is_empty()),
            Err(error) => {
                assert!(!fits && error.kind() == ErrorKind::BodyTooLarge, "{error}");
                assert_eq!(error.status().unwrap(), 200);
                assert!(error.to_string().contains("10485760 bytes"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn an_endless_chunked_body_ends_at_the_cap() {
    let error = list_error(Act::Flood(CHUNKED.to_vec(), chunk(65_536))).await;
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
}

#[tokio::test]
async fn a_custom_size_limit_applies_to_one_call_or_all() {
    let server = Wire::start(|_| answer(200, &[], "[          ]"));
    let small = RequestOptions::new().max_response_bytes(10);
    let client = builder(&server.base()).options(&small).build().unwrap();
    let error = client.pets().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
    assert_eq!(error.attempts(), 1, "a retry would be too large");
    let larger = RequestOptions::new().max_response_bytes(12);
    list_with(&client, &larger).await.unwrap();
}

#[tokio::test]
async fn an_announced_size_allocates_nothing() {
    for length in ["9223372036854775807", "18446744073709551615"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n[]");
        let error = list_error(Act::Cut(head.into_bytes())).await;
        assert!(
            error.kind() == ErrorKind::Interrupted || error.kind() == ErrorKind::BodyTooLarge,
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_huge_error_body_is_cut_and_the_error_is_the_services() {
    for (head, more) in [
        (
            &b"HTTP/1.1 404 X\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
            chunk(65_536),
        ),
        (b"HTTP/1.1 404 X\r\n\r\n", vec![b'x'; 65_536]),
    ] {
        let error = list_error(Act::Flood(head.to_vec(), more)).await;
        assert!(error.is_not_found(), "{error}");
        assert_eq!(error.response().unwrap().body().len(), 64 * 1024);
    }
}

#[tokio::test]
async fn a_response_that_is_not_http_or_has_no_end_is_interrupted() {
    for text in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n[]",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n[]\r\n0\r\n\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 2OO OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n[]",
        "\n\n\n\n",
    ] {
        let error = list_error(Act::Cut(text.into())).await;
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{text:?}: {error}");
        assert!(error.to_string().contains("check the base URL"), "{error}");
    }
}

#[tokio::test]
async fn more_bytes_than_announced_do_not_become_the_next_answer() {
    let server = Wire::start(|number| {
        let mut bytes = http(200, &[], if number == 0 { "[]" } else { REX });
        if number == 0 {
            bytes.extend(http(200, &[], r#"[{"id":666}]"#));
        }
        Act::Answer(bytes)
    });
    let client = client(&server.base());
    assert!(client.pets().list().await.unwrap().is_empty());
    assert_eq!(create(&client).await.unwrap().id, 1);
}

#[tokio::test]
async fn headers_that_make_no_sense_are_passed_over() {
    let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n".to_vec();
    for (name, value) in [
        ("Date", "yesterday"),
        ("X-RateLimit-Limit", "\u{ff}\u{fe}"),
        ("X-RateLimit-Remaining", "-1"),
        ("X-RateLimit-Reset", "99999999999999999999"),
        ("Deprecation", "\u{ff}"),
        ("Sunset", "Fri, 99 Dec 9999 99:99:99 GMT"),
        ("Link", "<<>>;;;=,\"\\"),
        ("Link", "<http://[::1>; rel=next"),
        ("Retry-After", "-9223372036854775808"),
        ("Content-Type", "\u{80}/\u{80}"),
    ] {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"X-Raw: \xff\xfe\r\n\r\n[]");
    let server = Wire::start(move |_| Act::Answer(bytes.clone()));
    let meta = list_meta(&client(&server.base())).await;
    assert_eq!(
        (
            QuotaWindow::of(meta.headers()),
            meta.deprecation().is_none()
        ),
        (None, true)
    );
    assert_eq!(meta.headers()["x-raw"].as_bytes(), b"\xff\xfe");
}

#[tokio::test]
async fn a_post_after_an_idle_connection_closed_takes_a_new_one() {
    let (server, client) = serve(vec![Act::Cut(http(200, &[], "[]")), answer(201, &[], REX)]);
    client.pets().list().await.unwrap();
    // The client can read the end of the connection before the next request.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    create(&client).await.unwrap();
    assert_eq!(server.count(), 2);
}
