//! Tests of the speed with unusual services: after an unforeseen refusal, with a hidden quota, with
//! a wrong clock, and with a plan for a thousand concurrent calls.

use std::time::Duration;

use tokio::time::timeout;

use super::kit::{millis, secs};
use super::service::{
    Clock, Counts, Fault, MINUTE, Rules, Service, Shown, get, keep_busy, patient, work,
};

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

/// Five windows of a service that does not show its minute quota. With 65 a minute, one probe and
/// four rounds of 16 use it up exactly, so that the next round is refused as a whole.
async fn hidden_minute(shown: Shown) {
    let mut wrong = Vec::new();
    for per_minute in [60, 65] {
        for tasks in [1, 16, 64, 256] {
            let rules = Rules { shown, per_day: 10_000, ..Rules::per_minute(per_minute) };
            let counts = busy(rules, tasks, 5).await;
            let used = counts.total() * 100 / (per_minute * 5);
            if counts.bans > 0 || used < 75 {
                wrong.push(format!(
                    "{tasks} tasks, {per_minute} a minute: {} bans, {} refused, {used} % used",
                    counts.bans, counts.refused
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_minute_quota_that_is_hidden_or_shown_by_a_429_alone_gets_no_key_banned() {
    hidden_minute(Shown::Day).await;
    hidden_minute(Shown::OnRefusal).await;
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

/// 300 requests at 60 a minute, from the start of a window.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_off_and_not_sent_costs_no_window() {
    let mut slow = Vec::new();
    for (ahead, tasks) in [3_600, -3_600, 30, -30]
        .into_iter()
        .flat_map(|ahead| [1, 16, 64].map(|tasks| (ahead, tasks)))
    {
        let latency = millis(50);
        let rules = Rules { clock: Clock::Undated(ahead), latency, ..Rules::per_minute(60) };
        let service = Service::start(rules);
        let client = patient(&service.base()).build().unwrap();
        let took = work(&client, tasks, 300, MINUTE * 60 * 24).await;
        let counts = service.counts();
        assert_eq!(counts.bans, 0, "{ahead} s ahead, {tasks} tasks: {counts:?}");
        if took > MINUTE * 5 + MINUTE / 2 + MINUTE {
            slow.push(format!(
                "{ahead} s ahead, {tasks} tasks: {took:?}, {} refused",
                counts.refused
            ));
        }
    }
    assert!(slow.is_empty(), "300 requests at 60 a minute took: {slow:#?}");
}
