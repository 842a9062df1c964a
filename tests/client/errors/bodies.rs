//! Bodies that are too large, connections that break, and servers that do not speak HTTP.

use petstore_client::limits::QuotaWindow;
use petstore_client::{Client, ErrorKind, NewPet, RequestOptions};

use crate::client::kit::{REX, answer, client, http, list_error, list_meta, secs, serve};
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
    let small = RequestOptions::new().max_response_bytes(10);
    let server = Wire::of(vec![answer(200, &[], "[          ]")]);
    let client = crate::client::kit::builder(&server.base())
        .options(&small)
        .build()
        .unwrap();
    let error = client.pets().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
    assert_eq!(error.attempts(), 1, "a retry would be too large");
    client
        .pets()
        .list()
        .options(&RequestOptions::new().max_response_bytes(12))
        .await
        .unwrap();
    let error = client
        .pets()
        .list()
        .options(&small.max_response_bytes(0))
        .send()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BodyTooLarge, "{error}");
}

#[tokio::test]
async fn a_created_pet_that_is_too_large_may_have_been_created() {
    let (server, client) = serve(vec![Act::Answer(http(201, &[], " ".repeat(100)))]);
    let error = client
        .pets()
        .create(&NewPet::new("a", 1))
        .options(&RequestOptions::new().max_response_bytes(10))
        .await
        .unwrap_err();
    assert!(
        error.kind() == ErrorKind::BodyTooLarge && error.may_have_been_processed(),
        "{error}"
    );
    assert_eq!(server.count(), 1);
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

#[tokio::test(start_paused = true)]
async fn no_more_of_an_error_is_awaited_than_is_kept() {
    let mut bytes = b"HTTP/1.1 500 X\r\nContent-Length: 999999\r\n\r\n".to_vec();
    bytes.resize(bytes.len() + 70_000, b'x');
    let start = tokio::time::Instant::now();
    let error = list_error(Act::Stall(bytes)).await;
    assert!(
        error.kind() == ErrorKind::Server && !error.response().unwrap().body().is_empty(),
        "{error}"
    );
    assert!(start.elapsed() < secs(1));
}

#[tokio::test]
async fn an_endless_head_is_given_up() {
    for more in ["X-A: aaaaaaaaaaaaaaaa\r\n", "aaaaaaaaaaaaaaaa"] {
        let head = b"HTTP/1.1 200 OK\r\nX-B: ".to_vec();
        let error = list_error(Act::Flood(head, more.repeat(1_000).into_bytes())).await;
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
    }
}

#[tokio::test]
async fn a_response_that_is_not_http_or_has_no_end_is_interrupted() {
    for text in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n[]",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n[]\r\n0\r\n\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 2OO OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nX-A: \0\r\n\r\n[]",
        "\x16\x03\x01\x02",
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
    assert_eq!(
        client
            .pets()
            .create(&NewPet::new("Rex", 7))
            .await
            .unwrap()
            .id,
        1
    );
}

#[tokio::test]
async fn an_error_whose_body_breaks_off_keeps_its_status() {
    let cut = b"HTTP/1.1 404 X\r\nContent-Length: 99\r\nX-A: b\r\n\r\n{\"code\":";
    let error = list_error(Act::Cut(cut.to_vec())).await;
    assert!(error.is_not_found(), "{error}");
    assert_eq!(error.response().unwrap().headers()["x-a"], "b");
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
async fn ninety_headers_and_a_huge_link_are_taken() {
    let links = (0..5_000)
        .map(|n| format!("</{n}>; rel=\"a b c\""))
        .collect::<Vec<_>>()
        .join(",");
    let mut headers = vec![("Link", links.as_str())];
    headers.extend([("X-Filler", "x"); 90]);
    let bytes = http(200, &headers, "[]");
    let server = Wire::start(move |_| Act::Answer(bytes.clone()));
    assert_eq!(listed(&client(&server.base())).await, 0);
}

async fn listed(client: &Client) -> usize {
    client.pets().list().await.unwrap().len()
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=next\r\n\r\n".repeat(3);
    bytes.extend(http(200, &[], "[]"));
    let server = Wire::start(move |_| Act::Answer(bytes.clone()));
    assert_eq!(listed(&client(&server.base())).await, 0);
}

#[tokio::test]
async fn a_post_after_an_idle_connection_closed_takes_a_new_one() {
    let (server, client) = serve(vec![Act::Cut(http(200, &[], "[]")), answer(201, &[], REX)]);
    listed(&client).await;
    // The client can read the end of the connection before the next request.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    client.pets().create(&NewPet::new("a", 1)).await.unwrap();
    assert_eq!(server.count(), 2);
}
