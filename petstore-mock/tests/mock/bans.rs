//! Tests of the temporary ban of a key.

use std::time::Duration;

use petstore_mock::Plan;

use super::support::{MINUTE_ENDS, Mock, start, start_with};

/// Exhausts the quota per minute of a Free key, and gets one 429.
async fn exhausted() -> Mock {
    let mock = start().await;
    for _ in 0..60 {
        mock.get_as("free-key", "/v1/store/orders").await;
    }
    mock.get_as("free-key", "/v1/pets")
        .await
        .expect_error(429, "rate_limit_exceeded");
    mock
}

#[tokio::test]
async fn the_11th_request_while_told_to_wait_brings_the_ban() {
    let mock = exhausted().await;
    for _ in 0..10 {
        mock.get_as("free-key", "/v1/pets")
            .await
            .expect_error(429, "rate_limit_exceeded");
    }
    let banned = mock.get_as("free-key", "/v1/pets").await;
    banned.expect_error(429, "key_banned");
    assert_eq!(banned.header("retry-after"), "300");
    assert_eq!(banned.rate(), (60, 0, MINUTE_ENDS));
    assert_eq!(
        mock.get_as("pro-key", "/v1/pets").await.status,
        200,
        "another key is unharmed"
    );
}

#[tokio::test]
async fn a_ban_outlasts_the_window_is_not_lengthened_and_ends() {
    let mock = exhausted().await;
    for _ in 0..11 {
        mock.get_as("free-key", "/v1/pets").await;
    }
    mock.advance(100);
    for _ in 0..20 {
        let banned = mock.get_as("free-key", "/v1/nowhere").await;
        banned.expect_error(429, "key_banned");
        assert_eq!(banned.header("retry-after"), "200");
        assert_eq!(banned.rate().1, 60, "a refused request uses nothing");
    }
    mock.advance(199);
    assert_eq!(
        mock.get_as("free-key", "/v1/pets")
            .await
            .header("retry-after"),
        "1"
    );
    mock.advance(1);
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.status, 200);
}

#[tokio::test]
async fn a_wait_between_two_seconds_of_the_clock_is_exact() {
    let mock = start_with(|builder| builder.key("one", Plan::enterprise(1, 9))).await;
    mock.server.clock().advance(Duration::from_millis(250));
    let wait = async || {
        mock.get_as("one", "/v1/pets")
            .await
            .header("retry-after")
            .to_owned()
    };
    assert_eq!(wait().await, "-");
    for _ in 0..11 {
        assert_eq!(wait().await, "50", "49.75 s are left of the minute");
    }
    assert_eq!(wait().await, "300");
    mock.server.clock().advance(Duration::from_millis(1_500));
    assert_eq!(wait().await, "299", "298.5 s are left of the ban");
    mock.server.clock().advance(Duration::from_millis(298_499));
    assert_eq!(wait().await, "1");
    mock.server.clock().advance(Duration::from_millis(1));
    assert_eq!(wait().await, "-");
}
