//! Tests of quotas, refusals and bans with the client (specification, section 8).

use std::time::Duration;

use petstore_client::limits::{self, BlockReason, Limits, Quota, QuotaWindow};
use petstore_client::{Client, ClientBuilder};
use petstore_mock::{MockServer, Plan};

use super::{START, at, frozen, watched};
use crate::client::reason;

/// Returns the client's quotas of a plan in the specification.
fn plan_of_client(name: &str) -> Option<limits::Plan> {
    match name {
        "Free" => Some(limits::Plan::FREE),
        "Pro" => Some(limits::Plan::PRO),
        "Business" => Some(limits::Plan::BUSINESS),
        "Enterprise" => None,
        other => panic!("which quotas has the plan {other} in the client?"),
    }
}

/// Returns the rows of the table of plans in a text.
fn rows_of_plans(text: &str) -> Vec<Vec<String>> {
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| line.starts_with("| plan |")).unwrap();
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    })
    .collect()
}

#[test]
fn client_and_mock_have_the_plans_of_the_specification() {
    let rows = rows_of_plans(include_str!("../../petstore-mock/guide/specification.md"));
    let document = include_str!("../../petstore-mock/openapi.yaml");
    assert_eq!(rows, rows_of_plans(document), "openapi.yaml");
    let names: Vec<_> = rows.iter().map(|row| row[0].to_lowercase()).collect();
    let list = format!("{} or enterprise:MINUTE/DAY", names.join(", "));
    let action = include_str!("../../.github/actions/petstore-mock/action.yml");
    assert!(action.contains(&list), "{list} in action.yml");
    let problem = "".parse::<Plan>().unwrap_err().to_string();
    assert!(problem.contains(&list), "{list} of the mock");
    for row in rows {
        let plan: Plan = row[0].to_lowercase().parse().unwrap();
        let Some(of_client) = plan_of_client(&row[0]) else {
            continue;
        };
        let number = |cell: &str| cell.replace(',', "").parse::<u32>().unwrap();
        let (minute, day) = (number(&row[1]), number(&row[2]));
        assert_eq!((plan.per_minute(), plan.per_day()), (minute, day));
        let expected = limits::Plan::custom();
        let expected = expected.per_minute(minute.into()).per_day(day.into());
        assert_eq!(of_client, expected, "{row:?}");
    }
}

/// A client that never waits.
fn impatient(server: &MockServer) -> ClientBuilder {
    Client::builder(server.url())
        .api_key("key")
        .max_wait(Duration::ZERO)
        .isolated_limits()
}

/// A client that ignores quotas, and never waits.
fn ungated(server: &MockServer) -> Client {
    impatient(server)
        .limits(Limits::new().enabled(false))
        .build()
        .unwrap()
}

#[tokio::test]
async fn the_61st_request_on_a_free_key_is_not_even_sent() {
    let server = watched(frozen(Plan::Free)).await;
    let client = impatient(&server).build().unwrap();
    for left in (0..60).rev() {
        let page = client.pets().list().with_meta().await.unwrap();
        let quota = QuotaWindow::of(page.meta.headers()).unwrap();
        assert_eq!((quota.limit, quota.remaining), (60, left));
    }
    let error = client.pets().list().await.unwrap_err();
    assert!(error.is_rate_limited(), "{error}");
    assert_eq!((error.attempts(), error.status()), (0, None));
    assert_eq!(reason(&error), Some(BlockReason::Quota(Quota::Minute)));
    // A second passes after the reset, because services round.
    assert_eq!(error.retry_at(), Some(at(START + 61)));
    let limits = client.limits().snapshot();
    assert_eq!(limits.blocked.unwrap().until, at(START + 61));
    let minute = &limits.windows[0];
    assert_eq!(
        (limits.throttled, minute.limit, minute.remaining),
        (0, 60, 0)
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
    assert_eq!(error.code(), Some("rate_limit_exceeded"));
    assert_eq!(reason(&error), Some(BlockReason::Quota(Quota::Minute)));
    assert_eq!(error.retry_at(), Some(at(START + 60)));
    assert_eq!(error.attempts(), 1);
    for _ in 0..3 {
        let error = client.store().orders().await.unwrap_err();
        assert_eq!(error.attempts(), 0);
        assert_eq!(reason(&error), Some(BlockReason::Quota(Quota::Minute)));
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
    assert_eq!(error.code(), Some("key_banned"));
    assert_eq!(reason(&error), Some(BlockReason::Ban));
    let blocked = client.limits().snapshot().blocked.unwrap();
    assert_eq!(blocked.reason, BlockReason::Ban);
    assert_eq!(error.retry_at(), Some(at(START + 300)));
}
