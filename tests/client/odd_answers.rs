//! Answers that are not a success and not the contract's Error either.

use petstore_client::{Error, ErrorKind, NewPet};

use super::kit::{answer, client, no_pets, once};
use super::wire::{Act, Wire};

async fn refused(answer: Act) -> Error {
    let server = Wire::of(vec![answer]);
    let error = client(&server.base()).pets().list().options(&once()).await.unwrap_err();
    assert!(error.headers().is_some() && server.count() == 1, "{error}");
    error
}

#[tokio::test]
async fn keeps_an_html_error_page_and_shows_it_cut_and_printable() {
    let page = format!("<html>\u{1b}]0;pwned\u{7}\u{202e}{}</html>", "é".repeat(100_000));
    let error = refused(answer(502, &[("Content-Type", "text/html")], &page)).await;
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
    let error = refused(answer(400, &[], body.to_string())).await;
    assert_eq!(error.json::<serde_json::Value>().unwrap(), body);
    let problem = error.json::<Vec<u8>>().unwrap_err();
    assert_eq!((problem.kind(), problem.decode_path()), (ErrorKind::Decode, Some(".")));
}

#[tokio::test]
async fn survives_an_error_without_body_and_one_that_is_no_utf_8() {
    let error = refused(answer(500, &[], "")).await;
    assert_eq!(error.body().unwrap(), "");
    let error = refused(answer(500, &[], b"\xff\xfe\x00")).await;
    assert_eq!(error.body().unwrap(), &b"\xff\xfe\x00"[..]);
    assert!(error.to_string().contains("\u{fffd}\u{fffd}\\u{0}"), "{error}");
}

#[tokio::test]
async fn survives_an_error_object_of_other_shapes() {
    for body in ["[]", "null", "7", r#"{"error":{"code":1}}"#, r#"{"code":{},"message":9}"#] {
        let error = refused(answer(400, &[], body)).await;
        assert_eq!((error.code(), error.message()), (None, None), "{body}");
        assert_eq!(error.body().unwrap(), body);
    }
}

#[tokio::test]
async fn believes_the_status_line_and_not_the_status_in_the_body() {
    let body = r#"{"code":"a","message":"b","status":200}"#;
    let error = refused(answer(404, &[], body)).await;
    assert_eq!(error.status().unwrap(), 404);
    assert!(error.is_not_found());
}

#[tokio::test]
async fn makes_the_services_own_words_harmless_in_the_message() {
    let body = r#"{"code":"\u001b[2J","message":"a\u001b[31m\nb\u202e"}"#;
    let error = refused(answer(400, &[], body)).await;
    assert_eq!(error.code(), Some("\u{1b}[2J"));
    let message = error.to_string();
    assert!(!message.chars().any(|c| c.is_control() || c == '\u{202e}'), "{message:?}");
}

#[tokio::test]
async fn a_status_that_nobody_has_heard_of_is_an_error_of_its_own() {
    for status in [299, 300, 418, 451, 499, 599, 600, 999] {
        let server = Wire::of(vec![answer(status, &[], "[]")]);
        match client(&server.base()).pets().list().await {
            Ok(page) => assert_eq!((status, page.meta().status().as_u16()), (299, 299)),
            Err(error) => assert_eq!(error.status().unwrap(), status),
        }
    }
}

#[tokio::test]
async fn never_follows_a_redirect_and_never_takes_the_key_there() {
    let elsewhere = Wire::of(vec![no_pets()]);
    for status in [301, 302, 303, 307, 308] {
        let target = elsewhere.base() + "/pets";
        let error = refused(answer(status, &[("Location", &target)], "")).await;
        assert_eq!(error.status().unwrap(), status);
        let message = error.to_string();
        assert!(message.contains(&format!("it points to {target}")), "{message}");
        assert!(message.contains("redirects are not followed"), "{message}");
    }
    assert_eq!(elsewhere.count(), 0);
}

async fn creating(status: u16) -> Error {
    let server = Wire::of(vec![answer(status, &[], "")]);
    let error = client(&server.base()).pets().create(&NewPet::new("a", 1)).await.unwrap_err();
    assert_eq!(server.count(), 1);
    error
}

#[tokio::test]
async fn only_a_4xx_is_proof_that_a_post_did_nothing() {
    for status in [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 425] {
        assert!(!creating(status).await.may_have_been_processed(), "{status}");
    }
    // 303 is how some services say "done, look there".
    for status in [302, 303, 408, 500, 501, 502, 503, 504, 600] {
        assert!(creating(status).await.may_have_been_processed(), "{status}");
    }
}
