//! Tests of invalid bodies of `POST /pets`.

use reqwest::Method;

use super::support::{REX, post_head, reply, start};

#[tokio::test]
async fn malformed_bodies_are_400_and_say_where() {
    let mock = start().await;
    for (body, says) in [
        ("", "one JSON object, such as {\"name\": \"Rex\""),
        (
            "{\n  \"name\": Rex}",
            "`name`: expected value at line 2 column 11",
        ),
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
            "floating point `7.5`, expected i64",
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
        reply.expect_error(400, "invalid_body");
        assert!(
            reply.message().contains(says),
            "{body}: {}",
            reply.message()
        );
    }
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
    // Deep nesting is no end of the server.
    for before in ["", "{\"name\": ", "{\"other\": "] {
        let deep = format!("{before}{}", "[".repeat(1_000_000));
        mock.post(deep).await.expect_error(400, "invalid_body");
    }
    assert_eq!(mock.server.pets().len(), 25);
}

#[tokio::test]
async fn only_json_is_taken() {
    let mock = start().await;
    for (name, value, status) in [
        ("content-type", "application/json", 201),
        ("content-type", "APPLICATION/JSON;charset=\"UTF-8\"", 201),
        ("content-type", "application/json ;x=y", 201),
        ("content-type", "application/json; charset=us-ascii", 201),
        ("content-type", "application/json; charset=utf-16", 415),
        ("content-type", "application/json; charset=", 415),
        ("content-type", "application/jsonp", 415),
        ("content-type", "application/problem+json", 415),
        ("content-type", "text/json", 415),
        ("content-type", ";", 415),
        ("content-type", "", 415),
        ("x-other", "1", 415),
    ] {
        let request = mock
            .request(Method::POST, "/v1/pets")
            .bearer_auth("pro-key");
        let answer = reply(request.header(name, value).body(REX)).await;
        assert_eq!(answer.status, status, "{name}: {value}");
        if status == 415 {
            answer.expect_error(415, "unsupported_media_type");
        }
    }
    let packed = mock
        .request(Method::POST, "/v1/pets")
        .bearer_auth("pro-key");
    let packed = packed.header("content-type", "application/json");
    let packed = reply(packed.header("content-encoding", "gzip").body(REX)).await;
    packed.expect_error(415, "unsupported_media_type");
}

#[tokio::test]
async fn a_body_of_more_than_a_mebibyte_is_413() {
    let mock = start().await;
    let name = |length: usize| format!(r#"{{"categoryId": 7, "name": "{}"}}"#, "x".repeat(length));
    let most = 1024 * 1024 - name(0).len();
    assert_eq!(mock.post(name(most)).await.status, 201);
    let more = mock.post(name(most + 1)).await;
    more.expect_error(413, "payload_too_large");
    assert_eq!(more.rate().0, 1_000_000);
    // A length that is announced is refused without reading.
    let head = post_head("Content-Length: 1048577\r\nExpect: 100-continue");
    let reply = mock.raw(head.as_bytes()).await;
    reply.expect_error(413, "payload_too_large");
    assert_eq!(reply.header("connection"), "close");
}

#[tokio::test]
async fn the_sender_of_a_body_that_is_too_long_gets_the_answer() {
    let mock = start().await;
    // This is far more than the kernel buffers. If the mock closed at once, the connection would be
    // reset, and the client might never see the answer.
    let body = vec![b' '; 20_000_000];
    let head = post_head(&format!("Content-Length: {}", body.len()));
    for _ in 0..3 {
        let answer = mock.raw(&[head.as_bytes(), &body].concat()).await;
        answer.expect_error(413, "payload_too_large");
        let answer = mock.post(body.clone()).await;
        answer.expect_error(413, "payload_too_large");
        let answer = mock.post_as("no-key", body.clone()).await;
        answer.expect_error(401, "unauthorized");
    }
}

#[tokio::test]
async fn a_chunked_body_is_counted_while_it_is_read() {
    let mock = start().await;
    let head = post_head("Transfer-Encoding: chunked");
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1024 * 1024));
    // This body never ends. The mock must answer at the limit, without waiting for the rest.
    let endless = mock.raw(format!("{head}{chunk}{chunk}").as_bytes()).await;
    endless.expect_error(413, "payload_too_large");
    let close = post_head("Transfer-Encoding: chunked\r\nConnection: close");
    let short = format!("{close}{:x}\r\n{REX}\r\n0\r\n\r\n", REX.len());
    assert_eq!(mock.raw(short.as_bytes()).await.json()["name"], "Rex");
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
