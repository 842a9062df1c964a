//! Connections that break, and servers that do not speak HTTP.

use petstore_client::{Client, Error, ErrorKind, NewPet};

use super::kit::{REX, answer, client, http, once};
use super::wire::{Act, Wire};

async fn list(client: &Client) -> Error {
    client.pets().list().options(&once()).await.unwrap_err()
}

fn whole() -> Vec<u8> {
    http(200, &[], format!("[{REX}]"))
}

#[tokio::test]
async fn a_response_that_breaks_off_anywhere_is_interrupted() {
    let length = whole().len();
    for end in [0, 1, 9, 20, length - REX.len(), length - 1] {
        for reset in [false, true] {
            let server = Wire::start(move |_| {
                let part = whole()[..end].to_vec();
                if reset { Act::Reset(part) } else { Act::Cut(part) }
            });
            let error = list(&client(&server.base())).await;
            assert_eq!(error.kind(), ErrorKind::Interrupted, "{end}: {error}");
            assert!(error.may_have_been_processed());
            assert!(std::error::Error::source(&error).is_some());
        }
    }
}

#[tokio::test]
async fn a_chunked_body_without_its_end_is_interrupted() {
    for body in ["2\r\n[]\r\n", "2\r\n[", "ffffffffffffffffff\r\n[]", "zz\r\n[]\r\n0\r\n\r\n"] {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let text = format!("{head}{body}");
        let server = Wire::start(move |_| Act::Cut(text.clone().into_bytes()));
        let error = list(&client(&server.base())).await;
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{body:?}: {error}");
    }
}

#[tokio::test]
async fn what_is_not_http_is_no_answer() {
    for text in [
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
        let server = Wire::start(move |_| Act::Cut(text.as_bytes().to_vec()));
        let error = list(&client(&server.base())).await;
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
    assert_eq!(client.pets().create(&NewPet::new("Rex", 7)).await.unwrap().id, 1);
}

#[tokio::test]
async fn an_error_whose_body_breaks_off_keeps_its_status() {
    let server = Wire::start(|_| {
        Act::Cut(b"HTTP/1.1 404 X\r\nContent-Length: 99\r\nX-A: b\r\n\r\n{\"code\":".to_vec())
    });
    let error = list(&client(&server.base())).await;
    assert!(error.is_not_found(), "{error}");
    assert_eq!(error.headers().unwrap()["x-a"], "b");
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
    let page = client(&server.base()).pets().list().await.unwrap();
    assert_eq!((page.meta().quota(), page.meta().deprecation().is_none()), (None, true));
    assert_eq!(page.meta().headers()["x-raw"].as_bytes(), b"\xff\xfe");
}

#[tokio::test]
async fn ninety_headers_and_a_huge_link_are_taken() {
    let links = (0..5_000).map(|n| format!("</{n}>; rel=\"a b c\"")).collect::<Vec<_>>().join(",");
    let mut headers = vec![("Link", links.as_str())];
    headers.extend([("X-Filler", "x"); 90]);
    let bytes = http(200, &headers, "[]");
    let server = Wire::start(move |_| Act::Answer(bytes.clone()));
    assert_eq!(list_ok(&client(&server.base())).await, 0);
}

async fn list_ok(client: &Client) -> usize {
    client.pets().list().await.unwrap().len()
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=next\r\n\r\n".repeat(3);
    bytes.extend(http(200, &[], "[]"));
    let server = Wire::start(move |_| Act::Answer(bytes.clone()));
    assert_eq!(list_ok(&client(&server.base())).await, 0);
}

#[tokio::test]
async fn a_post_after_the_server_closed_an_idle_connection_takes_a_new_one() {
    let server = Wire::of(vec![Act::Cut(http(200, &[], "[]")), answer(201, &[], REX)]);
    let client = client(&server.base());
    list_ok(&client).await;
    // The end of the connection is there to be read before the next request is made.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    client.pets().create(&NewPet::new("a", 1)).await.unwrap();
    assert_eq!(server.count(), 2);
}
