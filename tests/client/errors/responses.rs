//! Tests of error responses and of invalid responses.

use petstore_client::http::Method;
use petstore_client::{Error, ErrorKind, Pet};

use crate::client::kit::{answer, client, create_error, list_error, no_pets, once, serve};
use crate::client::wire::{Act, Wire};

async fn refused(answer: Act) -> Error {
    let error = list_error(answer).await;
    assert!(error.response().is_some(), "{error}");
    error
}

#[tokio::test]
async fn keeps_an_html_error_page_and_does_not_show_it() {
    let page = "<!DOCTYPE html><html>Bad Gateway</html>";
    let error = refused(answer(502, &[("Content-Type", "text/html")], page)).await;
    assert_eq!(error.response().unwrap().body(), page.as_bytes());
    let message = "the service answered 502 Bad Gateway with an HTML page";
    assert_eq!(error.problem(), message);
}

#[tokio::test]
async fn keeps_an_error_page_and_shows_it_cut_and_printable() {
    let page = format!("\u{1b}]0;pwned\u{7}\u{202e}{}", "é".repeat(100_000));
    let error = refused(answer(502, &[("Content-Type", "text/plain")], &page)).await;
    assert_eq!(error.kind(), ErrorKind::Server);
    assert_eq!((error.code(), error.message()), (None, None));
    assert_eq!(
        error.response().unwrap().body(),
        &page.as_bytes()[..64 * 1024]
    );
    let message = error.to_string();
    assert!(message.chars().count() < 600, "{message}");
    assert!(!message.chars().any(|c| c.is_control() || c == '\u{202e}'));
}

#[tokio::test]
async fn a_long_json_body_is_kept_whole_and_can_be_read() {
    let body = serde_json::json!({"code": "invalid_body", "errors": ["x".repeat(10_000)]});
    let error = refused(answer(400, &[], body.to_string())).await;
    assert_eq!(
        error
            .response()
            .unwrap()
            .json::<serde_json::Value>()
            .unwrap(),
        body
    );
    let problem = error.response().unwrap().json::<Vec<u8>>().unwrap_err();
    assert_eq!(problem.kind(), ErrorKind::Decode);
    assert!(problem.to_string().contains("at `.`: "), "{problem}");
}

#[tokio::test]
async fn survives_an_error_body_of_any_shape() {
    for body in [
        &b""[..],
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        br#"{"error":{"code":1}}"#,
        br#"{"code":{},"message":9}"#,
    ] {
        let error = refused(answer(400, &[], body)).await;
        assert_eq!((error.code(), error.message()), (None, None), "{body:?}");
        assert_eq!(error.response().unwrap().body(), body);
        assert!(!error.to_string().contains('\0'), "{error}");
    }
}

#[tokio::test]
async fn an_unknown_status_is_kept() {
    for status in [299, 300, 418, 451, 499, 599, 600, 999] {
        let server = Wire::of(vec![answer(status, &[], "[]")]);
        match client(&server.base()).pets().list().with_meta().await {
            Ok(page) => assert_eq!((status, page.meta.status().as_u16()), (299, 299)),
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
        assert!(
            message.contains(&format!("it points to {target}")),
            "{message}"
        );
        assert!(message.contains("redirects are not followed"), "{message}");
    }
    assert_eq!(elsewhere.count(), 0);
}

async fn listed(body: &[u8]) -> Result<Vec<Pet>, Error> {
    let server = Wire::of(vec![answer(200, &[], body)]);
    let page = client(&server.base()).pets().list().await;
    assert_eq!(server.count(), 1);
    Ok(page?.items)
}

async fn undecodable(body: &str) -> Error {
    let error = listed(body.as_bytes()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{body}: {error}");
    assert_eq!(error.status().unwrap(), 200);
    assert_eq!(error.operation(), Some("listPets"));
    error
}

#[tokio::test]
async fn says_where_a_value_has_the_wrong_type() {
    for (body, path) in [
        (r#"[{"id":"1","name":"a","categoryId":1}]"#, "[0].id"),
        (r#"[{"id":1.0,"name":"a","categoryId":1}]"#, "[0].id"),
        (
            r#"[{"id":9223372036854775808,"name":"a","categoryId":1}]"#,
            "[0].id",
        ),
        (r#"[{"id":1,"name":null,"categoryId":1}]"#, "[0].name"),
        (
            r#"[{"id":1,"name":"a","categoryId":1,"status":7}]"#,
            "[0].status",
        ),
        (
            r#"[{"id":1,"name":"a","categoryId":1},{"id":2,"name":"b"}]"#,
            "[1]",
        ),
        (r#"[{"id":1,"id":2,"name":"a","categoryId":1}]"#, "[0]"),
        (r#"{"pets":[]}"#, "."),
        ("null", "."),
    ] {
        let error = undecodable(body).await;
        assert!(
            error.to_string().contains(&format!("at `{path}`: ")),
            "{error}"
        );
        assert_eq!(error.response().unwrap().body(), body);
    }
}

#[tokio::test]
async fn says_that_a_body_is_not_json() {
    for body in [
        "<!doctype html><p>Hello",
        "[{]",
        "[",
        "[]x",
        "\u{feff}[]",
        "NaN",
    ] {
        let error = undecodable(body).await.to_string();
        assert!(error.contains("its body is not JSON"), "{body}: {error}");
    }
    for body in ["", " \r\n"] {
        assert!(
            undecodable(body)
                .await
                .to_string()
                .contains("its body is empty")
        );
    }
}

#[tokio::test]
async fn survives_json_nested_beyond_any_sense() {
    let depth = 1_000_000;
    let unknown = format!(
        r#"[{{"id":1,"name":"a","categoryId":1,"x":{}{}}}]"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    // Deep nesting in an unknown field may be decoded or not, but must not crash.
    let _ = listed(unknown.as_bytes()).await;
    let error = undecodable(&"[".repeat(depth)).await;
    assert_eq!(error.response().unwrap().body().len(), 64 * 1024);
}

#[tokio::test]
async fn a_huge_value_never_makes_a_huge_message() {
    let error = undecodable(&format!(r#"[{{"id":"{}"}}]"#, "x".repeat(1_000_000))).await;
    let source = std::error::Error::source(&error).unwrap();
    for text in [error.to_string(), source.to_string(), format!("{error:?}")] {
        assert!(text.len() < 5_000, "{} bytes", text.len());
    }
}

#[tokio::test]
async fn an_empty_success_says_that_the_pet_may_have_been_added() {
    for status in [200, 201, 202, 204, 205] {
        let error = create_error(answer(status, &[], "")).await;
        assert!(
            error.kind() == ErrorKind::Decode && error.may_have_been_processed(),
            "{error}"
        );
        assert_eq!(error.status().unwrap(), status);
    }
}

#[tokio::test]
async fn a_raw_answer_may_be_empty_or_anything() {
    let (_server, client) = serve(vec![answer(204, &[], "")]);
    let raw = client.request(Method::DELETE, "/pets/1").options(&once());
    let raw = raw.send().await.unwrap();
    assert_eq!((raw.status().as_u16(), &*raw.text()), (204, ""));
    let error = raw.json::<Pet>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{error}");
    assert_eq!(error.operation(), Some("DELETE /pets/1"));
}
