//! Tests of error responses and of invalid responses.

use petstore_client::http::Method;
use petstore_client::{Error, ErrorKind, Pet};

use crate::client::kit::{answer, client, list_error, no_pets, serve};
use crate::client::wire::{Act, Wire};

#[tokio::test]
async fn keeps_an_error_page_and_shows_it_cut_and_printable() {
    let page = format!("\u{1b}]0;pwned\u{7}\u{202e}{}", "é".repeat(100_000));
    let error = list_error(answer(502, &[("Content-Type", "text/plain")], &page)).await;
    assert_eq!(error.kind(), ErrorKind::Server);
    assert_eq!((error.code(), error.message()), (None, None));
    let body = error.response().unwrap().body();
    assert_eq!(body, &page.as_bytes()[..64 * 1024]);
    let message = error.to_string();
    assert!(message.chars().count() < 600, "{message}");
    assert!(!message.chars().any(|c| c.is_control() || c == '\u{202e}'));
}

#[tokio::test]
async fn an_endless_error_page_is_cut_and_the_error_is_the_services() {
    let head = b"HTTP/1.1 404 X\r\n\r\n".to_vec();
    let error = list_error(Act::Flood(head, vec![b'x'; 65_536])).await;
    assert!(error.is_not_found(), "{error}");
    assert_eq!(error.response().unwrap().body().len(), 64 * 1024);
}

#[tokio::test]
async fn a_long_json_body_is_kept_whole_and_can_be_read() {
    let body = serde_json::json!({"code": "invalid_body", "errors": ["x".repeat(10_000)]});
    let error = list_error(answer(400, &[], body.to_string())).await;
    let response = error.response().unwrap();
    assert_eq!(response.json::<serde_json::Value>().unwrap(), body);
    let problem = response.json::<Vec<u8>>().unwrap_err();
    assert_eq!(problem.kind(), ErrorKind::Decode, "{problem}");
}

#[tokio::test]
async fn never_follows_a_redirect_and_never_takes_the_key_there() {
    let elsewhere = Wire::of(vec![no_pets()]);
    for status in [301, 302, 303, 307, 308] {
        let target = elsewhere.base() + "/pets";
        let error = list_error(answer(status, &[("Location", &target)], "")).await;
        assert_eq!(error.status().unwrap(), status);
        assert!(error.to_string().contains(&target), "{error}");
    }
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn a_body_of_10_mib_is_read_and_one_byte_more_is_not() {
    for (length, fits) in [(10 << 20, true), ((10 << 20) + 1, false)] {
        let body = format!("[{}]", " ".repeat(length - 2));
        let server = Wire::of(vec![answer(200, &[], body)]);
        match client(&server.base()).pets().list().await {
            Ok(pets) => assert!(fits && pets.is_empty()),
            Err(error) => {
                assert!(!fits && error.kind() == ErrorKind::BodyTooLarge, "{error}");
                assert_eq!(error.attempts(), 1, "a retry would be too large");
            }
        }
    }
}

#[tokio::test]
async fn a_response_that_is_not_http_or_has_no_end_is_interrupted() {
    for text in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n[]\r\n0\r\n\r\n",
        "HTTP/1.1 2OO OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n[]",
    ] {
        let error = list_error(Act::Cut(text.into())).await;
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{text:?}: {error}");
        assert!(error.to_string().contains("check the base URL"), "{error}");
    }
}

async fn undecodable(body: &str) -> Error {
    let server = Wire::of(vec![answer(200, &[], body)]);
    let error = client(&server.base()).pets().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{body}: {error}");
    assert_eq!(server.count(), 1);
    error
}

#[tokio::test]
async fn says_where_a_body_is_wrong_or_that_it_is_not_json() {
    let not_json = "its body is not JSON";
    for (body, problem) in [
        (
            r#"[{"id":9223372036854775808,"name":"a","categoryId":1}]"#,
            "at `[0].id`: ",
        ),
        (
            r#"[{"id":1,"name":"a","categoryId":1},{"id":2,"name":"b"}]"#,
            "at `[1]`: ",
        ),
        (r#"{"pets":[]}"#, "at `.`: "),
        ("[{]", not_json),
        ("[]x", not_json),
        ("\u{feff}[]", not_json),
        (" \r\n", "its body is empty"),
    ] {
        let error = undecodable(body).await;
        assert!(error.to_string().contains(problem), "{body}: {error}");
        assert_eq!(error.response().unwrap().body(), body);
    }
}

#[tokio::test]
async fn a_huge_value_and_deep_nesting_never_make_a_huge_message() {
    for body in [
        format!(r#"[{{"id":"{}"}}]"#, "x".repeat(1_000_000)),
        "[".repeat(1_000_000),
    ] {
        let error = undecodable(&body).await;
        let source = std::error::Error::source(&error).unwrap();
        for text in [error.to_string(), source.to_string(), format!("{error:?}")] {
            assert!(text.len() < 5_000, "{} bytes", text.len());
        }
        assert_eq!(error.response().unwrap().body().len(), 64 * 1024);
    }
}

#[tokio::test]
async fn a_raw_answer_may_be_empty_or_anything() {
    let (_server, client) = serve(vec![answer(204, &[], "")]);
    let raw = client.request(Method::DELETE, "/pets/1").await.unwrap();
    assert_eq!((raw.status().as_u16(), &*raw.text()), (204, ""));
    let error = raw.json::<Pet>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{error}");
    assert_eq!(error.operation(), Some("DELETE /pets/1"));
}
