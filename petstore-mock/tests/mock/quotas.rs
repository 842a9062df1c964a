//! Tests of the quotas of plans, their headers and windows.

use petstore_mock::{Plan, RateHeaders};
use reqwest::Method;
use serde_json::{Value, json};

use super::support::{DAY_ENDS, MINUTE_ENDS, Mock, NOW, reply, start, start_with};

/// Sends requests that must all be admitted.
async fn use_up(mock: &Mock, key: &str, times: u32) {
    for _ in 0..times {
        assert_eq!(mock.get_as(key, "/v1/store/orders").await.status, 200);
    }
}

#[tokio::test]
async fn every_plan_has_the_quota_the_specification_states() {
    let mock = start().await;
    let guide = include_str!("../../guide/specification.md");
    let table = guide
        .lines()
        .skip_while(|line| !line.starts_with("| plan |"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let mut plans = 0;
    for row in rows {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let limit = match cells[2] {
            "custom" => 1_000_000,
            number => number.replace(',', "").parse().unwrap(),
        };
        let key = format!("{}-key", cells[1].to_lowercase());
        let rate = mock.get_as(&key, "/v1/pets").await.rate();
        assert_eq!(rate, (limit, limit - 1, MINUTE_ENDS), "{key}");
        plans += 1;
    }
    assert!(plans >= 4, "{plans} plans");
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
    assert!(
        refused.message().contains("60 requests a minute"),
        "{}",
        refused.message()
    );
    assert_eq!(
        mock.get_as("pro-key", "/v1/pets").await.status,
        200,
        "another key is unharmed"
    );
    mock.advance(49);
    assert_eq!(
        mock.get_as("free-key", "/v1/pets")
            .await
            .header("retry-after"),
        "1"
    );
    mock.advance(1);
    let again = mock.get_as("free-key", "/v1/pets").await;
    assert_eq!(
        (again.status, again.rate()),
        (200, (60, 59, MINUTE_ENDS + 60))
    );
}

#[tokio::test]
async fn a_refusal_comes_before_404_405_415_and_400() {
    let mock = start_with(|builder| builder.key("one", Plan::enterprise(1, 100))).await;
    use_up(&mock, "one", 1).await;
    for (method, path) in [
        (Method::GET, "/v1/nowhere"),
        (Method::DELETE, "/v1/pets"),
        (Method::POST, "/v1/pets"),
        (Method::GET, "/v1/pets?limit=0"),
        (Method::GET, "/v1/pets/1"),
    ] {
        let request = mock.request(method, path).bearer_auth("one");
        reply(request)
            .await
            .expect_error(429, "rate_limit_exceeded");
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
    let mock = start().await;
    for minute in 0..17 {
        use_up(&mock, "free-key", if minute < 16 { 60 } else { 40 }).await;
        mock.advance(60);
    }
    let refused = mock.get_as("free-key", "/v1/pets").await;
    refused.expect_error(429, "rate_limit_exceeded");
    assert_eq!(refused.rate(), (1_000, 0, DAY_ENDS));
    assert_eq!(
        refused.header("retry-after"),
        (DAY_ENDS - NOW - 17 * 60).to_string()
    );
    assert!(
        refused.message().contains("1000 requests a day"),
        "{}",
        refused.message()
    );
    mock.advance(86_400);
    assert_eq!(mock.get_as("free-key", "/v1/pets").await.rate().1, 59);
}

#[tokio::test]
async fn an_hours_quota_is_shown_beside_the_others() {
    let plan = Plan::enterprise(5, 100).with_per_hour(7);
    let mock = start_with(|builder| builder.named_key("hourly", "hourly-key", plan)).await;
    let hour_ends = NOW - NOW % 3_600 + 3_600;
    use_up(&mock, "hourly-key", 5).await;
    mock.advance(60);
    let rate = mock.get_as("hourly-key", "/v1/pets").await.rate();
    assert_eq!(rate, (7, 1, hour_ends));
    use_up(&mock, "hourly-key", 1).await;
    let refused = mock.get_as("hourly-key", "/v1/pets").await;
    refused.expect_error(429, "rate_limit_exceeded");
    assert_eq!(refused.rate(), (7, 0, hour_ends));
    assert_eq!(
        refused.header("retry-after"),
        (hour_ends - NOW - 60).to_string()
    );
    let message = refused.message();
    assert!(
        message.contains("7 requests an hour is used up"),
        "{message}"
    );

    let keys = mock.get("/_mock/keys").await.json();
    let find = |name: &str| {
        let keys = keys.as_array().unwrap();
        let has_name = |key: &&Value| key["label"].as_str().unwrap().contains(name);
        keys.iter().find(has_name).unwrap()
    };
    assert_eq!(find("hourly")["plan"], "enterprise:5/7/100");
    assert_eq!(
        find("hourly")["hour"],
        json!({"limit": 7, "used": 7, "remaining": 0, "reset": hour_ends as f64})
    );
    assert_eq!(find("hourly")["day"]["used"], 7);

    // A snapshot keeps the count, even if the key got another plan in between.
    let snapshot = mock.server.snapshot();
    let key = mock.server.keys().get("hourly-key").unwrap();
    key.set_plan(Plan::enterprise(5, 100));
    assert_eq!(mock.get_as("hourly-key", "/v1/pets").await.status, 200);
    assert_eq!(key.usage().unwrap().hour, None);
    mock.server.restore(&snapshot).unwrap();
    assert_eq!(key.usage().unwrap().hour.map(|hour| hour.used), Some(7));
    assert_eq!(mock.get_as("hourly-key", "/v1/pets").await.status, 429);
    mock.advance(hour_ends - NOW - 60);
    assert_eq!(mock.get_as("hourly-key", "/v1/pets").await.rate().1, 4);
}

#[tokio::test]
async fn the_headers_describe_the_chosen_quota() {
    for (headers, rate) in [
        (RateHeaders::Minute, (60, 59, MINUTE_ENDS)),
        (RateHeaders::Day, (1_000, 999, DAY_ENDS)),
        (RateHeaders::Tightest, (60, 59, MINUTE_ENDS)),
    ] {
        let mock = start_with(|builder| builder.rate_headers(headers)).await;
        assert_eq!(
            mock.get_as("free-key", "/v1/pets").await.rate(),
            rate,
            "{headers:?}"
        );
    }
}

#[tokio::test]
async fn counts_exactly_when_many_ask_at_once() {
    let mock = start().await;
    let requests = (0..200).map(|_| {
        let request = mock
            .request(Method::GET, "/v1/store/orders")
            .bearer_auth("free-key");
        async move { request.send().await.unwrap().status().as_u16() }
    });
    let statuses = futures_util::future::join_all(requests).await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 60);
    assert_eq!(
        statuses.iter().filter(|status| **status == 429).count(),
        140
    );
}
