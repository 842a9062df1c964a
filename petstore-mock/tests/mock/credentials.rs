//! Tests of the key: required by every operation, and never repeated.

use reqwest::Method;

use super::support::{MINUTE_ENDS, reply, start};

const OPERATIONS: [(Method, &str); 4] = [
    (Method::GET, "/v1/pets"),
    (Method::POST, "/v1/pets"),
    (Method::GET, "/v1/pets/1"),
    (Method::GET, "/v1/store/orders"),
];

#[tokio::test]
async fn every_operation_is_401_without_a_valid_key() {
    let mock = start().await;
    for (method, path) in OPERATIONS {
        let missing = reply(mock.request(method.clone(), path)).await;
        missing.expect_error(401, "unauthorized");
        assert_eq!(
            missing.header("www-authenticate"),
            "Bearer realm=\"petstore\""
        );
        assert_eq!(
            missing.rate(),
            (60, 60, MINUTE_ENDS),
            "Free's minute, untouched"
        );
        let unknown = reply(mock.request(method, path).bearer_auth("s3cr3t")).await;
        unknown.expect_error(401, "unauthorized");
        assert!(
            unknown
                .header("www-authenticate")
                .ends_with("error=\"invalid_token\"")
        );
        assert!(!unknown.body.contains("s3cr3t"));
    }
}

#[tokio::test]
async fn says_what_is_wrong_with_a_key_without_repeating_it() {
    let mock = start().await;
    for (value, hint) in [
        ("Basic s3cr3t", "another scheme"),
        ("s3cr3t", "another scheme"),
        ("Bearer", "empty"),
        ("Bearer ", "empty"),
        ("Bearer s3cr3t s3cr3t", "a space"),
        ("Bearer s3cr3té", "non-ASCII"),
        ("Bearer FREE-KEY", "not known"),
    ] {
        let request = mock
            .request(Method::GET, "/v1/pets")
            .header("authorization", value);
        let reply = reply(request).await;
        reply.expect_error(401, "unauthorized");
        assert!(
            reply.message().contains(hint),
            "{value}: {}",
            reply.message()
        );
        assert!(!reply.body.contains("s3cr3t"), "{}", reply.body);
    }
    let twice = mock
        .request(Method::GET, "/v1/pets")
        .bearer_auth("free-key")
        .header("authorization", "Bearer free-key");
    let twice = reply(twice).await;
    twice.expect_error(401, "unauthorized");
    assert!(twice.message().contains("more than one"));
}

#[tokio::test]
async fn who_has_no_valid_key_is_never_429() {
    let mock = start().await;
    for _ in 0..70 {
        let reply = mock.get_as("nobody", "/v1/pets").await;
        assert_eq!((reply.status, reply.rate().1), (401, 60));
    }
    let free = mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(free.rate().1, 59, "refused requests use no quota");
}
