//! Answers that are not a success and not the contract's Error either.

use petstore_client::{Error, ErrorKind};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use super::kit::{base, client, once};

async fn refused(answer: ResponseTemplate) -> Error {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(answer).expect(1).mount(&server).await;
    let error = client(&base(&server)).pets().list().options(&once()).send().await.unwrap_err();
    assert!(error.headers().is_some(), "{error}");
    error
}

#[tokio::test]
async fn keeps_an_html_error_page_and_shows_it_cut_and_printable() {
    let page = format!("<html>\u{1b}]0;pwned\u{7}\u{202e}{}</html>", "é".repeat(100_000));
    let error = refused(ResponseTemplate::new(502).set_body_raw(page.clone(), "text/html")).await;
    assert_eq!(error.kind(), ErrorKind::Server);
    assert_eq!((error.code(), error.message()), (None, None));
    assert_eq!(error.body().unwrap(), &page.as_bytes()[..64 * 1024]);
    let message = error.to_string();
    assert!(message.chars().count() < 600, "{message}");
    assert!(!message.chars().any(|c| c.is_control() || c == '\u{202e}'));
}

#[tokio::test]
async fn a_long_json_body_is_kept_whole_and_can_be_read() {
    let body = serde_json::json!({"code": "invalid_body", "errors": ["x".repeat(10_000)]});
    let error = refused(ResponseTemplate::new(400).set_body_json(&body)).await;
    assert_eq!(error.json::<serde_json::Value>().unwrap(), body);
    let problem = error.json::<Vec<u8>>().unwrap_err();
    assert_eq!((problem.kind(), problem.decode_path()), (ErrorKind::Decode, Some(".")));
}

#[tokio::test]
async fn survives_an_error_without_body_and_one_that_is_no_utf_8() {
    let error = refused(ResponseTemplate::new(500)).await;
    assert_eq!(error.body().unwrap(), "");
    let error = refused(ResponseTemplate::new(500).set_body_bytes(*b"\xff\xfe\x00")).await;
    assert_eq!(error.body().unwrap(), &b"\xff\xfe\x00"[..]);
    assert!(error.to_string().contains("\u{fffd}\u{fffd}\\u{0}"), "{error}");
}

#[tokio::test]
async fn survives_an_error_object_of_other_shapes() {
    for body in ["[]", "null", "7", r#"{"error":{"code":1}}"#, r#"{"code":{},"message":9}"#] {
        let error = refused(ResponseTemplate::new(400).set_body_string(body)).await;
        assert_eq!((error.code(), error.message()), (None, None), "{body}");
        assert_eq!(error.body().unwrap(), body);
    }
}

#[tokio::test]
async fn believes_the_status_line_and_not_the_status_in_the_body() {
    let body = r#"{"code":"a","message":"b","status":200}"#;
    let error = refused(ResponseTemplate::new(404).set_body_string(body)).await;
    assert_eq!(error.status().unwrap(), 404);
    assert!(error.is_not_found());
}

#[tokio::test]
async fn makes_the_services_own_words_harmless_in_the_message() {
    let body = r#"{"code":"\u001b[2J","message":"a\u001b[31m\nb\u202e"}"#;
    let error = refused(ResponseTemplate::new(400).set_body_string(body)).await;
    assert_eq!(error.code(), Some("\u{1b}[2J"));
    let message = error.to_string();
    assert!(!message.chars().any(|c| c.is_control() || c == '\u{202e}'), "{message:?}");
}

#[tokio::test]
async fn a_status_that_nobody_has_heard_of_is_an_error_of_its_own() {
    for status in [299, 300, 418, 451, 499, 599, 600, 999] {
        let server = MockServer::start().await;
        let answer = ResponseTemplate::new(status).set_body_string("[]");
        Mock::given(any()).respond_with(answer).mount(&server).await;
        let result = client(&base(&server)).pets().list().send().await;
        match result {
            Ok(page) => assert_eq!((status, page.meta().status().as_u16()), (299, 299)),
            Err(error) => assert_eq!(error.status().unwrap(), status),
        }
    }
}
