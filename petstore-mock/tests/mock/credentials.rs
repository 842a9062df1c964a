//! Tests of the key, which every operation requires, and of the ban of a key.

use petstore_mock::Plan;
use reqwest::Method;

use super::support::{MINUTE_ENDS, reply, start, start_with};

#[tokio::test]
async fn every_operation_is_401_without_a_valid_key() {
    let mock = start().await;
    for line in [
        "GET /v1/pets",
        "POST /v1/pets",
        "GET /v1/pets/1",
        "GET /v1/store/orders",
    ] {
        let missing = mock.send(line, "").await;
        missing.expect_error(401, "unauthorized");
        assert_eq!(
            missing.header("www-authenticate"),
            "Bearer realm=\"petstore\""
        );
        let untouched = (60, 60, MINUTE_ENDS);
        assert_eq!(missing.rate(), untouched, "Free's minute");
        let (method, path) = line.split_once(' ').unwrap();
        let unknown = mock
            .request(method.parse().unwrap(), path)
            .bearer_auth("s3cr3t");
        let unknown = reply(unknown).await;
        unknown.expect_error(401, "unauthorized");
        let challenge = unknown.header("www-authenticate");
        assert!(
            challenge.ends_with("error=\"invalid_token\""),
            "{challenge}"
        );
        assert!(!unknown.body.contains("s3cr3t"));
    }
}

#[tokio::test]
async fn says_what_is_wrong_with_a_key_without_repeating_it() {
    let mock = start().await;
    for (values, hint) in [
        (&["Basic s3cr3t"][..], "another scheme"),
        (&["Bearer"], "empty"),
        (&["Bearer s3cr3t s3cr3t"], "a space"),
        (&["Bearer FREE-KEY"], "not known"),
        (&["Bearer free-key", "Bearer free-key"], "more than one"),
    ] {
        let mut request = mock.request(Method::GET, "/v1/pets");
        for value in values {
            request = request.header("authorization", *value);
        }
        let reply = reply(request).await;
        reply.expect_error(401, "unauthorized");
        assert!(reply.message().contains(hint), "{values:?}: {}", reply.body);
        assert!(!reply.body.contains("s3cr3t"), "{}", reply.body);
    }
    // The case of the scheme does not matter (RFC 9110, section 11.1).
    let small = mock.request(Method::GET, "/v1/pets");
    let small = reply(small.header("authorization", "bearer free-key")).await;
    assert_eq!(small.status, 200);
}

#[tokio::test]
async fn a_request_without_a_valid_key_never_gets_429() {
    let mock = start().await;
    for _ in 0..70 {
        let reply = mock.get_as("nobody", "/v1/pets").await;
        assert_eq!((reply.status, reply.rate().1), (401, 60));
    }
    let free = mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(free.rate().1, 59, "refused requests use no quota");
}

#[tokio::test]
async fn a_ban_comes_with_the_11th_early_request_and_is_not_lengthened() {
    let mock = start_with(|builder| builder.key("one", Plan::enterprise(1, 9))).await;
    mock.get_as("one", "/v1/pets").await.expect_status(200);
    for _ in 0..11 {
        let refused = mock.get_as("one", "/v1/pets").await;
        refused.expect_error(429, "rate_limit_exceeded");
    }
    let banned = mock.get_as("one", "/v1/pets").await;
    banned.expect_error(429, "key_banned");
    assert_eq!(banned.header("retry-after"), "300");
    assert_eq!(banned.rate(), (1, 0, MINUTE_ENDS));
    mock.advance(100);
    for _ in 0..20 {
        let banned = mock.get_as("one", "/v1/nowhere").await;
        banned.expect_error(429, "key_banned");
        assert_eq!(banned.header("retry-after"), "200");
        assert_eq!(banned.rate().1, 1, "a refused request uses nothing");
    }
    mock.advance(200);
    assert_eq!(mock.get_as("one", "/v1/pets").await.status, 200);

    // Each of the declared senders may be early as often.
    let shared = mock.server.key(Plan::enterprise(0, 9)).senders(2);
    for _ in 0..21 {
        let refused = mock.get_as(&shared, "/v1/pets").await;
        refused.expect_error(429, "rate_limit_exceeded");
    }
    let banned = mock.get_as(&shared, "/v1/pets").await;
    banned.expect_error(429, "key_banned");
}
