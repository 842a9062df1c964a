//! Tests of the quotas of plans, their headers and windows.

use petstore_mock::{Plan, RateHeaders};

use super::support::{DAY_ENDS, MINUTE_ENDS, Mock, NOW, reply, start, start_with};

/// Sends requests that must all be admitted.
async fn use_up(mock: &Mock, key: &str, times: u32) {
    for _ in 0..times {
        assert_eq!(mock.get_as(key, "/v1/store/orders").await.status, 200);
    }
}

#[tokio::test]
async fn the_61st_request_of_a_minute_on_a_free_key_is_429() {
    let mock = start().await;
    for left in (0..60).rev() {
        let reply = mock.get_as("free-key", "/v1/pets?limit=1").await;
        assert_eq!((reply.status, reply.rate()), (200, (60, left, MINUTE_ENDS)));
        assert_eq!(reply.header("retry-after"), "-");
    }
    let refused = mock.get_as("free-key", "/v1/pets").await;
    refused.expect_error(429, "rate_limit_exceeded");
    assert_eq!(refused.header("retry-after"), "50");
    assert_eq!(refused.rate(), (60, 0, MINUTE_ENDS));
    let message = refused.message();
    assert!(message.contains("60 requests a minute"), "{message}");
    let other = mock.get_as("pro-key", "/v1/pets").await;
    assert_eq!(other.status, 200, "another key is unharmed");
    mock.advance(49);
    let late = mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(late.header("retry-after"), "1");
    mock.advance(1);
    let again = mock.get_as("free-key", "/v1/pets").await.rate();
    assert_eq!(again, (60, 59, MINUTE_ENDS + 60));
}

#[tokio::test]
async fn a_refusal_comes_before_404_405_415_and_400() {
    let mock = start_with(|builder| builder.key("one", Plan::enterprise(1, 100))).await;
    use_up(&mock, "one", 1).await;
    for line in [
        "GET /v1/nowhere",
        "DELETE /v1/pets",
        "POST /v1/pets",
        "GET /v1/pets?limit=0",
        "GET /v1/pets/1",
    ] {
        let (method, path) = line.split_once(' ').unwrap();
        let request = mock
            .request(method.parse().unwrap(), path)
            .bearer_auth("one");
        let refused = reply(request).await;
        refused.expect_error(429, "rate_limit_exceeded");
    }
}

#[tokio::test]
async fn admitted_requests_count_whatever_their_status() {
    let mock = start_with(|builder| builder.rate_headers(RateHeaders::Day)).await;
    for path in ["/v1/nowhere", "/v1/pets?limit=0", "/v1/pets/99"] {
        mock.get_as("free-key", path).await.error();
    }
    use_up(&mock, "free-key", 57).await;
    for _ in 0..5 {
        assert_eq!(mock.get_as("free-key", "/v1/pets").await.status, 429);
    }
    mock.advance(50);
    let rate = mock.get_as("free-key", "/v1/pets").await.rate();
    assert_eq!(rate, (1_000, 939, DAY_ENDS));
}

#[tokio::test]
async fn the_days_quota_bites_until_midnight() {
    let mock = start_with(|builder| builder.key("day", Plan::enterprise(6, 10))).await;
    use_up(&mock, "day", 6).await;
    mock.advance(60);
    use_up(&mock, "day", 4).await;
    let refused = mock.get_as("day", "/v1/pets").await;
    refused.expect_error(429, "rate_limit_exceeded");
    assert_eq!(refused.rate(), (10, 0, DAY_ENDS));
    let wait = (DAY_ENDS - NOW - 60).to_string();
    assert_eq!(refused.header("retry-after"), wait);
    let message = refused.message();
    assert!(message.contains("10 requests a day"), "{message}");
    mock.advance(DAY_ENDS - NOW - 60);
    assert_eq!(mock.get_as("day", "/v1/pets").await.rate().1, 5);
}

#[tokio::test]
async fn counts_exactly_when_many_ask_at_once() {
    let mock = start().await;
    let requests = (0..200).map(|_| mock.get_as("free-key", "/v1/store/orders"));
    let answers = futures_util::future::join_all(requests).await;
    let count = |status| answers.iter().filter(|one| one.status == status).count();
    assert_eq!((count(200), count(429)), (60, 140));
}
