//! Quotas, refusals and bans (specification, section 8), as the client lives through them.

use std::time::Duration;

use petstore_client::{CallOptions, Client, Quota};
use petstore_mock::{Clock, MockServer, Plan};

use super::{START, at, client, frozen, watched};

/// A client that knows nothing but refusals, and never waits.
fn ungated(server: &MockServer) -> Client {
    let options = CallOptions::new().max_wait(Duration::ZERO);
    let builder = Client::builder(server.url()).api_key("key").defaults(options);
    builder.quota_gate(false).build().unwrap()
}

/// A client that never waits.
fn impatient(server: &MockServer) -> Client {
    let options = CallOptions::new().max_wait(Duration::ZERO);
    Client::builder(server.url()).api_key("key").defaults(options).build().unwrap()
}

#[tokio::test]
async fn the_61st_request_on_a_free_key_is_not_even_sent() {
    let server = watched(frozen(Plan::Free)).await;
    let client = impatient(&server);
    for left in (0..60).rev() {
        let page = client.pets().list().send().await.unwrap();
        let quota = page.rate_limit().unwrap();
        assert_eq!((quota.limit, quota.remaining), (60, left));
    }
    let error = client.pets().list().send().await.unwrap_err();
    assert!(error.is_rate_limited(), "{error}");
    assert_eq!((error.attempts(), error.status()), (0, None));
    assert_eq!((error.quota(), error.retry_at()), (Some(Quota::Minute), Some(at(START + 60))));
    let limits = client.rate_limit();
    assert_eq!((limits.refusals, limits.in_flight, limits.waiting), (0, 0, 0));
    assert_eq!(limits.blocked.unwrap().until, at(START + 60));
    assert_eq!((limits.quotas[0].limit, limits.quotas[0].remaining), (60, 0));
}

#[tokio::test]
async fn without_the_gate_the_61st_request_is_refused_and_nothing_more_is_sent() {
    let server = watched(frozen(Plan::Free)).await;
    let client = ungated(&server);
    for _ in 0..60 {
        client.pets().list().send().await.unwrap();
    }
    let error = client.pets().list().send().await.unwrap_err();
    assert_eq!(
        (error.status().unwrap().as_u16(), error.code()),
        (429, Some("rate_limit_exceeded"))
    );
    assert_eq!((error.quota(), error.retry_at()), (Some(Quota::Minute), Some(at(START + 60))));
    assert_eq!(error.headers().unwrap()["retry-after"], "60");
    assert_eq!(error.attempts(), 1);
    for _ in 0..3 {
        let error = client.clone().store().orders().await.unwrap_err();
        assert_eq!((error.attempts(), error.quota()), (0, Some(Quota::Minute)));
    }
}

#[tokio::test]
async fn the_days_quota_is_told_from_the_minutes() {
    let server = watched(frozen(Plan::enterprise(100, 2))).await;
    let client = impatient(&server);
    for _ in 0..2 {
        client.store().orders().await.unwrap();
    }
    let error = client.store().orders().await.unwrap_err();
    assert_eq!(error.quota(), Some(Quota::Day));
    let midnight = START.next_multiple_of(86_400);
    assert_eq!(error.retry_at(), Some(at(midnight)));
}

#[tokio::test]
async fn a_ban_is_told_from_a_quota() {
    let server = watched(frozen(Plan::enterprise(1, 100))).await;
    // Thirteen programs that do not know of each other keep asking while told to wait.
    for _ in 0..12 {
        let _ = ungated(&server).store().orders().await;
    }
    let error = ungated(&server).store().orders().await.unwrap_err();
    assert_eq!((error.code(), error.quota()), (Some("key_banned"), Some(Quota::Banned)));
    assert_eq!(error.retry_at(), Some(at(START + 300)));
}

#[tokio::test(start_paused = true)]
async fn a_call_beyond_the_quota_waits_for_the_minute_and_is_served() {
    let builder = MockServer::builder().key("key", Plan::Free).clock(Clock::runtime(at(START)));
    let server = watched(builder).await;
    let client = client(&server);
    for _ in 0..60 {
        client.store().orders().await.unwrap();
    }
    let orders = client.store().orders().await.unwrap();
    assert_eq!(orders.attempts(), 1);
    assert!(orders.waited() >= Duration::from_secs(58), "{:?}", orders.waited());
    assert_eq!(orders.rate_limit().unwrap().remaining, 59);
}
