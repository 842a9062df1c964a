//! Tests of the speed after an unforeseen refusal, and with a plan for a thousand concurrent calls.

use std::time::Duration;

use petstore_client::limits::Limits;
use petstore_mock::{Effect, RateFault, RetryAfter};
use tokio::time::timeout;

use crate::client::kit::{START, at, http, key, millis};
use crate::client::service::{self, MINUTE, get, keep_busy, patient, refused};
use crate::client::wire::{Act, Wire};

/// The latency. Two requests in flight use a third of the plan, and eight all of it.
const LATENCY: Duration = Duration::from_millis(800);

/// Returns the number of requests in the fourth minute, with this effect on the 101st response.
async fn fourth_minute(odd: Option<Effect>) -> usize {
    let server = service::start_with(key(), 500, LATENCY).await;
    let fault = odd.map(|odd| server.faults().on_all().nth(101).apply(odd));
    let client = patient(server.url()).build().unwrap();
    let limit = 5 * MINUTE;
    timeout(limit, keep_busy(&client, 16, 4 * MINUTE))
        .await
        .unwrap();
    assert_eq!(refused(&server), 0);
    drop(fault);
    let minute = at(START) + 3 * MINUTE..at(START) + 4 * MINUTE;
    server
        .requests(..)
        .iter()
        .filter(|one| minute.contains(&one.arrived))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_503_or_an_unforeseen_429_slows_a_key_for_two_windows() {
    let wait = Effect::RetryAfter(RetryAfter::Seconds(1));
    // A response of a proxy in front of the service has no rate headers.
    let proxy = Effect::RateHeaders(RateFault::Missing);
    let odd = [
        Effect::All(vec![Effect::status(503), wait.clone(), proxy]),
        Effect::All(vec![Effect::status(429), wait]),
    ];
    let reference = fourth_minute(None).await;
    for odd in odd {
        // There are two whole windows between the odd response and the fourth minute.
        let admitted = fourth_minute(Some(odd.clone())).await;
        assert!(
            admitted * 100 >= reference * 95,
            "{odd:?}: {admitted} requests, and {reference} without it"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_a_million_a_minute_lets_1024_calls_go_at_once() {
    const TASKS: usize = 1_024;
    let quota = [
        ("X-RateLimit-Limit", "1000000"),
        ("X-RateLimit-Remaining", "900000"),
        ("X-RateLimit-Reset", "60"),
    ];
    let server = Wire::start(move |_| Act::Later(millis(100), http(200, &quota, "[]")));
    let limits = Limits::new().max_in_flight(1_024);
    let client = patient(&server.base()).limits(limits).build().unwrap();
    timeout(MINUTE, get(&client)).await.unwrap().unwrap();
    timeout(MINUTE, keep_busy(&client, TASKS, millis(500)))
        .await
        .unwrap();
    let (done, possible) = (server.count() - 1, TASKS * 5);
    assert!(
        done * 10 >= possible * 9,
        "{done} of {possible} requests in half a second"
    );
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_that_shows_another_quota_stops_nobody() {
    let quota = [
        ("X-RateLimit-Limit", "1000000"),
        ("X-RateLimit-Remaining", "900000"),
        ("X-RateLimit-Reset", "60"),
    ];
    let quota_of_all = [
        ("X-RateLimit-Limit", "60"),
        ("X-RateLimit-Remaining", "60"),
        ("X-RateLimit-Reset", "60"),
    ];
    let server = Wire::start(move |number| match number % 5 {
        4 => Act::Later(millis(100), http(503, &quota_of_all, "")),
        _ => Act::Later(millis(100), http(200, &quota, "[]")),
    });
    let client = patient(&server.base()).build().unwrap();
    timeout(MINUTE, keep_busy(&client, 16, MINUTE / 2))
        .await
        .unwrap();
    // Each of 16 tasks could send 300 requests, without the delay before a retry.
    assert!(server.count() > 2_000, "{} requests", server.count());
}
