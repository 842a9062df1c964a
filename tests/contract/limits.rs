//! Tests of quotas, refusals and bans with the client (specification, section 8).

use std::time::Duration;

use petstore_client::rate_limit::{BlockReason, Quota};
use petstore_client::{Client, ClientBuilder};
use petstore_mock::{MockServer, Plan};

use super::{START, at, frozen, watched};
use crate::client::reason;

/// A client that never waits.
fn impatient(server: &MockServer) -> ClientBuilder {
    Client::builder(server.url())
        .api_key("key")
        .max_wait(Duration::ZERO)
        .isolated_limits()
}

/// A client that ignores quotas, and never waits.
fn ungated(server: &MockServer) -> Client {
    impatient(server).rate_limiting(false).build().unwrap()
}

#[tokio::test]
async fn the_61st_request_on_a_free_key_is_not_even_sent() {
    let server = watched(frozen(Plan::Free)).await;
    let client = impatient(&server).build().unwrap();
    for left in (0..60).rev() {
        let page = client.pets().list().await.unwrap();
        let quota = page.meta().quota().unwrap();
        assert_eq!((quota.limit, quota.remaining), (60, left));
    }
    let error = client.pets().list().await.unwrap_err();
    assert!(error.is_rate_limited(), "{error}");
    assert_eq!((error.attempts(), error.status()), (0, None));
    assert_eq!(
        (reason(&error), error.retry_at()),
        (
            Some(BlockReason::Quota(Quota::Minute)),
            Some(at(START + 60))
        )
    );
    let limits = client.rate_limits();
    assert_eq!(
        (limits.throttled, limits.in_flight, limits.waiting),
        (0, 0, 0)
    );
    assert_eq!(limits.blocked.unwrap().until, at(START + 60));
    assert_eq!(
        (limits.windows[0].limit, limits.windows[0].remaining),
        (60, 0)
    );
}

#[tokio::test]
async fn the_61st_request_without_the_rate_limiter_is_refused() {
    let server = watched(frozen(Plan::Free)).await;
    let client = ungated(&server);
    for _ in 0..60 {
        client.pets().list().await.unwrap();
    }
    let error = client.pets().list().await.unwrap_err();
    assert_eq!(
        (error.status().unwrap().as_u16(), error.code()),
        (429, Some("rate_limit_exceeded"))
    );
    assert_eq!(
        (reason(&error), error.retry_at()),
        (
            Some(BlockReason::Quota(Quota::Minute)),
            Some(at(START + 60))
        )
    );
    assert_eq!(error.headers().unwrap()["retry-after"], "60");
    assert_eq!(error.attempts(), 1);
    for _ in 0..3 {
        let error = client.clone().store().orders().await.unwrap_err();
        assert_eq!(
            (error.attempts(), reason(&error)),
            (0, Some(BlockReason::Quota(Quota::Minute)))
        );
    }
}

#[tokio::test]
async fn a_ban_differs_from_a_quota() {
    let server = watched(frozen(Plan::enterprise(1, 100))).await;
    // Another program keeps sending during a `Retry-After`.
    let other = reqwest::Client::new();
    for _ in 0..12 {
        let orders = format!("{}/store/orders", server.url());
        other.get(orders).bearer_auth("key").send().await.unwrap();
    }
    let client = ungated(&server);
    let error = client.store().orders().await.unwrap_err();
    assert_eq!(
        (error.code(), reason(&error)),
        (Some("key_banned"), Some(BlockReason::Ban))
    );
    let known = client.rate_limits().blocked.map(|blocked| blocked.reason);
    assert_eq!(known, Some(BlockReason::Ban));
    assert_eq!(error.retry_at(), Some(at(START + 300)));
}
