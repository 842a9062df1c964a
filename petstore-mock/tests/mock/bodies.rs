//! Tests of invalid bodies of `POST /pets`.

use reqwest::Method;

use super::support::{REX, post_head, reply, start};

#[tokio::test]
async fn malformed_bodies_are_400_and_say_where() {
    let mock = start().await;
    for (body, says) in [
        ("", "one JSON object, such as {\"name\": \"Rex\""),
        ("[\"Rex\", 7]", "one JSON object"),
        ("{\n  \"name\": Rex}", "`name`: expected value at line 2"),
        (r#"{"name": "Rex"}"#, "missing field `categoryId`"),
        (r#"{"categoryId": 7}"#, "missing field `name`"),
        (r#"{"name": null, "categoryId": 7}"#, "`name`: invalid type"),
        (r#"{"name": "Rex", "categoryId": 7.5}"#, "`categoryId`: "),
        (
            r#"{"name": "Rex", "categoryId": 7, "status": "lost"}"#,
            "`status`: unknown variant `lost`, expected one of `available`, `pending`, `sold`",
        ),
        (
            r#"{"name": "Rex", "categoryId": 7, "status": null}"#,
            "`status`: ",
        ),
    ] {
        let reply = mock.post(body).await;
        reply.expect_error(400, "invalid_body");
        let message = reply.message();
        assert!(message.contains(says), "{body}: {message}");
    }
    let ignored = b"{\"name\": \"Rex\", \"categoryId\": 7, \"ignored\": \"\xc3\"}";
    let reply = mock.post(&ignored[..]).await;
    reply.expect_error(400, "invalid_body");
    assert!(reply.message().contains("is not UTF-8"), "{}", reply.body);
    // Deep nesting is no end of the server.
    let deep = format!("{{\"other\": {}", "[".repeat(1_000_000));
    mock.post(deep).await.expect_error(400, "invalid_body");
    assert_eq!(mock.server.pets().len(), 25);
}

#[tokio::test]
async fn only_json_is_taken() {
    let mock = start().await;
    let send = async |fields: &[(&'static str, &str)]| {
        let mut request = mock.request(Method::POST, "/v1/pets");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        reply(request.bearer_auth("pro-key").body(REX)).await
    };
    for value in [
        "APPLICATION/JSON;charset=\"UTF-8\"",
        "application/json ;x=y",
        "application/json; charset=us-ascii",
    ] {
        let answer = send(&[("content-type", value)]).await;
        assert_eq!(answer.status, 201, "{value}");
    }
    let json = ("content-type", "application/json");
    let plain = send(&[json, ("content-encoding", "identity")]).await;
    assert_eq!(plain.status, 201, "it is not encoded");
    for fields in [
        &[("content-type", "application/json; charset=utf-16")][..],
        &[("content-type", "application/jsonp")],
        &[("content-type", "text/json")],
        &[],
        &[
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
        ],
    ] {
        let answer = send(fields).await;
        assert_eq!(answer.status, 415, "{fields:?}");
        answer.expect_error(415, "unsupported_media_type");
    }
}

#[tokio::test]
async fn a_body_of_more_than_a_mebibyte_is_413() {
    let mock = start().await;
    let name = |length: usize| format!(r#"{{"categoryId": 7, "name": "{}"}}"#, "x".repeat(length));
    let most = 1024 * 1024 - name(0).len();
    assert_eq!(mock.post(name(most)).await.status, 201);
    let more = mock.post(name(most + 1)).await;
    more.expect_error(413, "payload_too_large");
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
}

#[tokio::test]
async fn a_truncated_body_is_400_and_closes_the_connection() {
    let mock = start().await;
    let head = post_head("Transfer-Encoding: chunked");
    let reply = mock.raw((head + "5\r\n{\"nam\r\nzz\r\n").as_bytes()).await;
    reply.expect_error(400, "invalid_body");
    assert_eq!(reply.header("connection"), "close");
}
