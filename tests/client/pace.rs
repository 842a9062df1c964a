//! Tests of the speed after an unforeseen refusal, and with a plan for a thousand concurrent calls.

use std::time::Duration;

use tokio::time::timeout;

use super::kit::{millis, secs};
use super::service::{Counts, Fault, MINUTE, Rules, Service, get, keep_busy, patient};

/// Runs several tasks against a service for some windows.
async fn busy(rules: Rules, tasks: usize, windows: u32) -> Counts {
    let service = Service::start(rules);
    let client = patient(&service.base()).build().unwrap();
    let length = MINUTE * windows;
    let limit = length + MINUTE;
    timeout(limit, keep_busy(&client, tasks, length)).await.unwrap();
    service.counts()
}

/// Two whole windows lie between the odd answer and the one that is compared.
async fn recovers(status: u16, latency: Duration) {
    let rules = Rules { latency, ..Rules::per_minute(1_000) };
    let mut slow = Vec::new();
    // At 400 ms, two in flight use a third of the plan, and eight all of it.
    for tasks in [16, 64] {
        let reference = busy(rules.clone(), tasks, 4).await;
        let fault = Some(Fault::Status(100, status));
        let counts = busy(Rules { fault, ..rules.clone() }, tasks, 4).await;
        assert_eq!((counts.refused, counts.bans), (0, 0), "{counts:?}");
        if counts.admitted[3] * 100 < reference.admitted[3] * 95 {
            slow.push((tasks, counts.admitted, reference.admitted));
        }
    }
    assert!(slow.is_empty(), "(tasks, requests by window, without the {status}): {slow:?}");
}

#[tokio::test(start_paused = true)]
async fn a_503_or_an_unforeseen_429_slows_a_key_for_two_windows_at_most() {
    recovers(503, millis(400)).await;
    recovers(429, millis(400)).await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_a_million_a_minute_lets_1024_calls_go_at_once() {
    const TASKS: usize = 1_024;
    const SECONDS: u64 = 1;
    let service = Service::start(Rules::per_minute(1_000_000));
    let client = patient(&service.base()).build().unwrap();
    timeout(MINUTE, get(&client)).await.unwrap().unwrap();
    let before = service.counts().total();
    timeout(MINUTE, keep_busy(&client, TASKS, secs(SECONDS))).await.unwrap();
    let done = service.counts().total() - before;
    // A response takes 100 ms.
    let possible = TASKS as u64 * 10 * SECONDS;
    assert!(done * 10 >= possible * 9, "{done} of {possible} requests in {SECONDS} seconds");
}
