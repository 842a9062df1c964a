//! Tests of the key, which every operation requires, and of the ban of a key.

use std::time::Duration;

use petstore_mock::Plan;
use reqwest::Method;

use super::support::{MINUTE_ENDS, Mock, reply, start, start_with};

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
        (&["s3cr3t"], "another scheme"),
        (&["Bearer"], "empty"),
        (&["Bearer "], "empty"),
        (&["Bearer s3cr3t s3cr3t"], "a space"),
        (&["Bearer s3cr3té"], "non-ASCII"),
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

/// Exhausts the quota per minute of a key, and is refused `refusals` times, but not banned.
async fn refused(refusals: usize) -> Mock {
    let mock = start_with(|builder| builder.key("one", Plan::enterprise(1, 9))).await;
    mock.get_as("one", "/v1/store/orders").await;
    for _ in 0..refusals {
        let refused = mock.get_as("one", "/v1/pets").await;
        refused.expect_error(429, "rate_limit_exceeded");
    }
    mock
}

#[tokio::test]
async fn a_ban_comes_with_the_11th_early_request_and_is_not_lengthened() {
    let mock = refused(11).await;
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
    mock.advance(199);
    let last = mock.get_as("one", "/v1/pets").await;
    assert_eq!(last.header("retry-after"), "1");
    mock.advance(1);
    assert_eq!(mock.get_as("one", "/v1/pets").await.status, 200);
}

#[tokio::test]
async fn a_wait_between_two_seconds_of_the_clock_is_exact() {
    let mock = refused(0).await;
    let advance = |millis| mock.server.clock().advance(Duration::from_millis(millis));
    let wait = async || {
        let answer = mock.get_as("one", "/v1/pets").await;
        answer.header("retry-after").to_owned()
    };
    advance(250);
    for _ in 0..11 {
        assert_eq!(wait().await, "50", "49.75 s are left of the minute");
    }
    assert_eq!(wait().await, "300");
    advance(1_500);
    assert_eq!(wait().await, "299", "298.5 s are left of the ban");
    advance(298_499);
    assert_eq!(wait().await, "1");
    advance(1);
    assert_eq!(wait().await, "-");
}
