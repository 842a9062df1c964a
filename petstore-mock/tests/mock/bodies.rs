//! Tests of invalid bodies of `POST /pets`.

use reqwest::Method;
use serde_json::Value;

use super::support::{REX, post_head, reply, start};

#[tokio::test]
async fn malformed_bodies_are_400_and_say_where() {
    let mock = start().await;
    for (body, says) in [
        ("", "one JSON object, such as {\"name\": \"Rex\""),
        ("{", "line 1 column 1"),
        (
            "{\n  \"name\": Rex}",
            "invalid body: `name`: expected value at line 2 column 11",
        ),
        ("{} {}", "missing field `name`"),
        (
            r#"{"name": "Rex", "categoryId": 7} {}"#,
            "trailing characters",
        ),
        ("[\"Rex\", 7]", "one JSON object"),
        ("null", "one JSON object"),
        (r#"{"name": "Rex"}"#, "missing field `categoryId`"),
        (r#"{"categoryId": 7}"#, "missing field `name`"),
        (
            r#"{"name": 7, "categoryId": 7}"#,
            "`name`: invalid type: integer `7`, expected a string",
        ),
        (r#"{"name": null, "categoryId": 7}"#, "invalid type: null"),
        (
            r#"{"name": "Rex", "categoryId": "7"}"#,
            "`categoryId`: invalid type: string \"7\", expected i64 at line 1 column 33",
        ),
        (
            r#"{"name": "Rex", "categoryId": 7.5}"#,
            "`categoryId`: invalid type: floating point `7.5`, expected i64",
        ),
        (
            r#"{"name": "Rex", "categoryId": null}"#,
            "invalid type: null",
        ),
        (
            r#"{"name": "Rex", "categoryId": 9223372036854775808}"#,
            "expected i64",
        ),
        (
            r#"{"name": "Rex", "categoryId": 1e999}"#,
            "number out of range",
        ),
        (
            r#"{"name": "Rex", "categoryId": 7, "status": "lost"}"#,
            "`status`: unknown variant `lost`, expected one of `available`, `pending`, `sold`",
        ),
        (
            r#"{"name": "Rex", "categoryId": 7, "status": null}"#,
            "`status`: ",
        ),
        (
            r#"{"name": "Rex", "name": "Rex", "categoryId": 7}"#,
            "duplicate field `name`",
        ),
        (
            r#"{"name": "\ud800", "categoryId": 7}"#,
            "`name`: unexpected end of hex escape",
        ),
    ] {
        let reply = mock.post(body).await;
        assert_eq!(reply.status, 400, "{body}");
        reply.expect_error(400, "invalid_body");
        assert!(
            reply.message().contains(says),
            "{body}: {}",
            reply.message()
        );
    }
    assert_eq!(
        mock.get("/v1/pets?limit=100")
            .await
            .json()
            .as_array()
            .map(Vec::len),
        Some(25)
    );
}

#[tokio::test]
async fn broken_utf8_is_400_wherever_it_is() {
    let mock = start().await;
    for body in [
        &b"{\"name\": \"R\xffx\", \"categoryId\": 7}"[..],
        b"{\"name\": \"Rex\", \"categoryId\": 7, \"ignored\": \"\xc3\"}",
        b"\xff\xfe{\x00",
    ] {
        let reply = mock.post(body).await;
        reply.expect_error(400, "invalid_body");
        assert!(
            reply.message().contains("is not UTF-8"),
            "{}",
            reply.message()
        );
    }
}

#[tokio::test]
async fn deep_nesting_is_400_and_not_the_end_of_the_server() {
    let mock = start().await;
    for before in ["", "{\"name\": ", "{\"other\": "] {
        let deep = format!("{before}{}", "[".repeat(1_000_000));
        mock.post(deep).await.expect_error(400, "invalid_body");
    }
    assert_eq!(mock.post(REX).await.status, 201);
}

#[tokio::test]
async fn only_json_is_taken() {
    let mock = start().await;
    let post = |name: &'static str, value: &'static str| {
        let request = mock
            .request(Method::POST, "/v1/pets")
            .bearer_auth("enterprise-key");
        reply(request.header(name, value).body(REX))
    };
    for good in [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON;charset=\"UTF-8\"",
        "application/json ;x=y",
        "application/json; charset=us-ascii",
    ] {
        assert_eq!(post("content-type", good).await.status, 201, "{good}");
    }
    for bad in [
        "application/json; charset=utf-16",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/problem+json",
        "text/json",
        "application/json; charset=",
        ";",
        "json",
        "",
    ] {
        let refused = post("content-type", bad).await;
        assert_eq!(refused.status, 415, "{bad}");
        refused.expect_error(415, "unsupported_media_type");
    }
    post("x-other", "1")
        .await
        .expect_error(415, "unsupported_media_type");
    let packed = mock
        .request(Method::POST, "/v1/pets")
        .bearer_auth("enterprise-key")
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .body(REX);
    reply(packed)
        .await
        .expect_error(415, "unsupported_media_type");
}

#[tokio::test]
async fn a_body_of_more_than_a_mebibyte_is_413() {
    let mock = start().await;
    let name = |length: usize| {
        format!(
            "{{\"categoryId\": 7, \"name\": \"{}\"}}",
            "x".repeat(length)
        )
    };
    let most = 1024 * 1024 - name(0).len();
    assert_eq!(mock.post(name(most)).await.status, 201);
    let more = mock.post(name(most + 1)).await;
    more.expect_error(413, "payload_too_large");
    assert_eq!(more.rate().0, 1_000_000);
}

#[tokio::test]
async fn the_sender_of_a_body_that_is_too_long_gets_the_answer() {
    let mock = start().await;
    // This is far more than the kernel buffers. If the mock closed at once, the connection would be
    // reset, and the client might never see the answer.
    let body = vec![b' '; 20_000_000];
    let head = post_head(&format!("Content-Length: {}", body.len()));
    for _ in 0..5 {
        let whole = [head.as_bytes(), &body].concat();
        mock.raw(&whole)
            .await
            .expect_error(413, "payload_too_large");
        mock.post(body.clone())
            .await
            .expect_error(413, "payload_too_large");
    }
}

#[tokio::test]
async fn a_length_that_is_announced_is_refused_without_reading() {
    let mock = start().await;
    let head = post_head("Content-Length: 1048577\r\nExpect: 100-continue");
    let reply = mock.raw(head.as_bytes()).await;
    reply.expect_error(413, "payload_too_large");
    assert_eq!(reply.header("connection"), "close");
}

#[tokio::test]
async fn a_chunked_body_is_counted_while_it_is_read() {
    let mock = start().await;
    let head = post_head("Transfer-Encoding: chunked");
    let chunk = [
        b"100000\r\n".to_vec(),
        vec![b' '; 1024 * 1024],
        b"\r\n".to_vec(),
    ]
    .concat();
    // This body never ends. The mock must answer at the limit, without waiting for the rest.
    let endless = mock.raw(&[head.as_bytes(), &chunk, &chunk].concat()).await;
    endless.expect_error(413, "payload_too_large");
    let short = format!("{:x}\r\n{REX}\r\n0\r\n\r\n", REX.len());
    let close = post_head("Transfer-Encoding: chunked\r\nConnection: close");
    let fits = mock.raw((close + &short).as_bytes()).await;
    assert_eq!(fits.status, 201);
    let pet: Value = fits.json();
    assert_eq!(pet["name"], "Rex");
}

#[tokio::test]
async fn a_large_body_without_a_key_is_still_answered_401() {
    let mock = start().await;
    for _ in 0..5 {
        let request = mock
            .request(Method::POST, "/v1/pets")
            .body(vec![b' '; 5_000_000]);
        reply(request).await.expect_error(401, "unauthorized");
    }
}

#[tokio::test]
async fn a_truncated_body_is_400_and_closes_the_connection() {
    let mock = start().await;
    for body in ["zz\r\n", "5\r\n{\"nam\r\nzz\r\n", "fffffffffffffffffff\r\n"] {
        let head = post_head("Transfer-Encoding: chunked");
        let reply = mock.raw((head + body).as_bytes()).await;
        reply.expect_error(400, "invalid_body");
        assert_eq!(reply.header("connection"), "close", "{body:?}");
    }
}
