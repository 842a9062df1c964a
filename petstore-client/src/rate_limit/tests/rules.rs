//! Tests of single mechanisms of the ledger. Each fails without its mechanism.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::rate_limit::quota::clock::{LocalTime, SECOND, ServiceTime};
use crate::rate_limit::quota::decision::Decision;
use crate::rate_limit::quota::local::Local;
use crate::rate_limit::quota::outstanding::Reservation;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::{Reading, ResponseHead};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::view::{BlockReason, Plan, Quota, WaitReason};

pub(crate) const HOUR: i64 = 3_600;
const LEASE: Duration = Duration::from_secs(30);

pub(crate) fn at(seconds: i64) -> LocalTime {
    LocalTime(seconds * SECOND)
}

/// The service's time at a number of seconds on the local clock, from the first response.
pub(crate) fn service(seconds: i64) -> ServiceTime {
    ServiceTime((1_800_000_000 + seconds) * SECOND)
}

pub(crate) fn new() -> Local {
    Local::new(at(0), service(0))
}

pub(crate) fn decide(local: &Local, now: i64) -> Decision {
    local.decide(at(now), &Policy::default())
}

pub(crate) fn send_with(local: &mut Local, now: i64, policy: &Policy) -> Reservation {
    let decision = local.decide(at(now), policy);
    let Decision::Send { probe } = decision else {
        panic!("{now}: {decision:?}")
    };
    let request = local.reserve(at(now), probe, policy);
    assert!(local.start(request, at(now), LEASE));
    request
}

pub(crate) fn send(local: &mut Local, now: i64) -> Reservation {
    send_with(local, now, &Policy::default())
}

pub(crate) fn respond(
    local: &mut Local,
    request: Reservation,
    now: i64,
    status: u16,
    reading: Option<Reading>,
    wait: Option<u64>,
) {
    let retry_after = wait.map(Duration::from_secs);
    let head = ResponseHead {
        status,
        date: Some(service(now)),
        reading,
        retry_after,
    };
    local.record_response(request, at(now), &head);
}

pub(crate) fn answer(local: &mut Local, request: Reservation, now: i64, reading: Option<Reading>) {
    respond(local, request, now, 200, reading, None);
}

pub(crate) fn throttle(local: &mut Local, request: Reservation, now: i64, wait: u64) {
    respond(local, request, now, 429, None, Some(wait));
}

pub(crate) fn reading(limit: u64, remaining: u64, reset: i64) -> Option<Reading> {
    Some(Reading {
        limit,
        remaining,
        reset: service(reset),
    })
}

/// Returns the second until which requests are blocked.
pub(crate) fn until(local: &Local, now: i64) -> Option<i64> {
    match decide(local, now) {
        Decision::WaitUntil(block) => Some(block.until.0 / SECOND),
        _ => None,
    }
}

#[test]
fn a_quota_that_is_not_described_is_forgotten_after_its_reset() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(5, 0, 10));
    let probe = send(&mut local, 12);
    answer(&mut local, probe, 12, reading(300, 299, 60));
    let limits: Vec<_> = local.ledger().windows().iter().map(Window::limit).collect();
    assert_eq!(limits, [300]);
}

#[test]
fn a_late_response_may_only_lower_the_figure() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(100, 99, 60));
    let (one, other) = (send(&mut local, 21), send(&mut local, 21));
    answer(&mut local, other, 22, reading(100, 97, 60));
    answer(&mut local, one, 22, reading(100, 98, 60));
    assert_eq!(local.ledger().windows()[0].remaining(), 97);
}

#[test]
fn a_quota_that_is_not_described_is_counted_down() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(1_000, 9, 12 * HOUR));
    for second in 1..4 {
        let request = send(&mut local, second);
        answer(&mut local, request, second, reading(60, 60 - 1, 60));
    }
    assert_eq!(local.ledger().windows()[0].remaining(), 6);
}

#[test]
fn lost_requests_count_where_the_next_response_shows_nothing() {
    for (status, reading, left) in [
        (401, reading(7, 3, 60), 27),
        (401, None, 27),
        (404, None, 26),
        (200, reading(60, 25, 60), 25),
    ] {
        let mut local = with_window(60, 30);
        for _ in 0..3 {
            let lost = send(&mut local, 1);
            local.record_lost(lost, at(1));
        }
        let next = send(&mut local, 2);
        respond(&mut local, next, 2, status, reading, None);
        assert_eq!(local.unresolved(), 0);
        let window = &local.ledger().windows()[0];
        assert_eq!((window.limit(), window.remaining()), (60, left), "{status}");
    }
}

#[test]
fn lost_requests_count_in_a_quota_that_is_not_described() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(1_000, 9, 12 * HOUR));
    let second = send(&mut local, 1);
    answer(&mut local, second, 1, reading(60, 59, 60));
    let lost = send(&mut local, 2);
    local.record_lost(lost, at(2));
    let next = send(&mut local, 4);
    answer(&mut local, next, 4, reading(60, 57, 60));
    let left: Vec<_> = local
        .ledger()
        .windows()
        .iter()
        .map(Window::remaining)
        .collect();
    assert_eq!(left, [6, 57]);
}

#[test]
fn a_shorter_wait_does_not_end_a_longer_one() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, None);
    let (one, other) = (send(&mut local, 1), send(&mut local, 1));
    throttle(&mut local, one, 1, 30);
    throttle(&mut local, other, 1, 5);
    assert_eq!(until(&local, 7), Some(31));
}

#[test]
fn no_value_blocks_for_longer_than_25_hours() {
    let longest = 25 * HOUR;
    let mut local = new();
    let first = send(&mut local, 0);
    throttle(&mut local, first, 0, 99_999_999);
    assert_eq!(until(&local, 1), Some(longest));
    assert_eq!(decide(&local, longest), Decision::Send { probe: true });
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(1, 0, 20 * 24 * HOUR));
    assert_eq!(until(&local, 1), Some(longest));
    assert_eq!(decide(&local, longest), Decision::Send { probe: true });
}

#[test]
fn a_server_error_blocks_nobody_whatever_it_asks_for() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(60, 59, 60));
    let failed = send(&mut local, 1);
    respond(&mut local, failed, 1, 503, None, Some(600));
    assert!(matches!(decide(&local, 1), Decision::Send { .. }));
    assert_eq!((local.in_flight(), local.unresolved()), (0, 1));
    let failed = send(&mut local, 2);
    respond(&mut local, failed, 2, 503, reading(60, 57, 60), Some(600));
    assert!(matches!(decide(&local, 2), Decision::Send { .. }));
    assert_eq!(local.throttled(), 0);
}

#[test]
fn a_used_up_quota_blocks_also_while_requests_are_in_flight() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(5, 4, 30));
    let (one, _other) = (send(&mut local, 1), send(&mut local, 1));
    answer(&mut local, one, 1, reading(5, 0, 30));
    assert_eq!(until(&local, 1), Some(30));
}

#[test]
fn requests_in_flight_are_no_block_for_a_window() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(3, 2, 30));
    let _both = (send(&mut local, 1), send(&mut local, 1));
    assert_eq!(
        decide(&local, 1),
        Decision::WaitForResponse(WaitReason::Reserved)
    );
    let plan = Policy {
        plan: Some(Plan::custom().per_minute(2)),
        ..Policy::default()
    };
    let mut local = new();
    let first = send_with(&mut local, 0, &plan);
    answer(&mut local, first, 0, None);
    let _second = send_with(&mut local, 1, &plan);
    let decision = local.decide(at(1), &plan);
    assert_eq!(decision, Decision::WaitForResponse(WaitReason::Reserved));
}

#[test]
fn a_used_up_plan_blocks_until_the_minute_and_counts_losses() {
    let plan = Policy {
        plan: Some(Plan::custom().per_minute(2)),
        ..Policy::default()
    };
    let mut local = new();
    let first = send_with(&mut local, 0, &plan);
    answer(&mut local, first, 0, None);
    let lost = send_with(&mut local, 1, &plan);
    local.record_lost(lost, at(1));
    let Decision::WaitUntil(block) = local.decide(at(1), &plan) else {
        panic!()
    };
    assert_eq!(
        (block.until, block.reason),
        (at(60), BlockReason::Quota(Quota::Minute))
    );
    assert!(matches!(local.decide(at(60), &plan), Decision::Send { .. }));
}

#[test]
fn without_rate_limiting_a_429_is_still_obeyed() {
    let off = Policy {
        rate_limiting: false,
        ..Policy::default()
    };
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(5, 0, 30));
    let second = send_with(&mut local, 1, &off);
    throttle(&mut local, second, 1, 30);
    assert!(matches!(local.decide(at(2), &off), Decision::WaitUntil(_)));
}

#[test]
fn a_lease_that_is_over_counts_as_lost() {
    let mut local = new();
    let _killed = send(&mut local, 0);
    local.expire(at(29));
    assert_eq!((local.in_flight(), local.unresolved()), (1, 0));
    local.expire(at(30));
    assert_eq!((local.in_flight(), local.unresolved()), (0, 1));
}

#[test]
fn a_request_is_lost_only_once() {
    let mut local = new();
    let slow = send(&mut local, 0);
    local.expire(at(60));
    local.record_lost(slow, at(60));
    assert_eq!(local.unresolved(), 1);
}

#[test]
fn an_unused_reservation_lapses_and_is_not_lost() {
    let mut local = new();
    let unused = local.reserve(at(0), true, &Policy::default());
    assert_eq!(
        decide(&local, 0),
        Decision::WaitForResponse(WaitReason::Probe)
    );
    local.expire(at(2));
    assert_eq!(decide(&local, 2), Decision::Send { probe: true });
    assert!(!local.start(unused, at(2), LEASE));
    assert!(!local.release(unused));
    assert_eq!((local.in_flight(), local.unresolved()), (0, 0));
}

#[test]
fn a_lost_request_is_settled_by_one_that_did_not_overtake_it() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(100, 99, 60));
    let (lost, soon) = (send(&mut local, 1), send(&mut local, 1));
    local.record_lost(lost, at(1));
    answer(&mut local, soon, 1, reading(100, 98, 60));
    assert_eq!(local.unresolved(), 1, "the lost one may still arrive");
    let later = send(&mut local, 2);
    answer(&mut local, later, 2, reading(100, 96, 60));
    assert_eq!(local.unresolved(), 0);
    assert_eq!(
        local.ledger().others().own_share(),
        None,
        "the missing requests are the lost ones, not those of other clients"
    );
}

#[test]
fn a_401_does_not_change_the_limits() {
    let mut local = new();
    let first = send(&mut local, 0);
    respond(&mut local, first, 0, 401, reading(60, 60, 30), None);
    assert!(local.ledger().windows().is_empty());
    let _probe = send(&mut local, 0);
    assert_eq!(
        decide(&local, 0),
        Decision::WaitForResponse(WaitReason::Probe)
    );
}

#[test]
fn an_unknown_quota_in_a_server_error_is_not_the_keys() {
    for status in [408, 414, 431, 500, 503] {
        let mut local = with_window(1_000, 999);
        let failed = send(&mut local, 1);
        respond(&mut local, failed, 1, status, reading(60, 60, 60), None);
        let limits = local.ledger().windows().iter().map(Window::limit);
        assert_eq!(limits.collect::<Vec<_>>(), [1_000], "{status}");
        let failed = send(&mut local, 2);
        respond(&mut local, failed, 2, status, reading(1_000, 50, 60), None);
        assert_eq!(local.ledger().windows()[0].remaining(), 50, "{status}");
    }
    // While nothing else is known, the quota of a server error is obeyed.
    let mut local = new();
    let first = send(&mut local, 0);
    respond(&mut local, first, 0, 503, reading(60, 0, 60), None);
    let reset = until(&local, 0).unwrap();
    assert!(reset >= 60);
    let next = send(&mut local, reset);
    answer(&mut local, next, reset, reading(1_000, 999, 120));
    let limits = local.ledger().windows().iter().map(Window::limit);
    assert_eq!(limits.collect::<Vec<_>>(), [1_000]);
}

#[test]
fn a_figure_of_a_window_that_is_over_opens_nothing() {
    let mut local = new();
    let slow = send(&mut local, 0);
    answer(&mut local, slow, 20, reading(60, 59, 10));
    assert!(local.ledger().windows().is_empty());
}

#[test]
fn a_days_and_a_minutes_quota_of_the_same_limit_are_two() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(1_000, 9, 12 * HOUR));
    let second = send(&mut local, 1);
    answer(&mut local, second, 1, reading(1_000, 999, 60));
    assert_eq!(local.ledger().windows().len(), 2);
}

#[test]
fn one_request_asks_after_the_reset_of_a_used_up_window() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(1, 0, 10));
    let _probe = send(&mut local, 10);
    assert_eq!(
        decide(&local, 10),
        Decision::WaitForResponse(WaitReason::Probe)
    );
}

#[test]
fn a_request_that_asks_for_one_quota_keeps_within_the_other() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(3, 2, 10));
    let second = send(&mut local, 1);
    answer(&mut local, second, 1, reading(2, 1, 40_000));
    // The next minute has begun, but the day has room only for this request.
    let _last = send(&mut local, 9);
    assert_eq!(
        decide(&local, 11),
        Decision::WaitForResponse(WaitReason::Reserved)
    );
}

#[test]
fn a_window_that_opens_late_is_waited_for_longer_the_next_time() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(1, 0, 10));
    let early = send(&mut local, 10);
    respond(&mut local, early, 10, 429, reading(1, 0, 10), Some(1));
    let probe = send(&mut local, 11);
    answer(&mut local, probe, 11, reading(1, 0, 20));
    assert_eq!(until(&local, 12), Some(21));
}

#[test]
fn a_window_late_by_another_backends_clock_is_waited_for() {
    let mut local = new();
    let dated = |local: &mut Local, request, now, ahead, status, reading, wait: Option<u64>| {
        let (date, retry_after) = (Some(service(now + ahead)), wait.map(Duration::from_secs));
        let head = ResponseHead {
            status,
            date,
            reading,
            retry_after,
        };
        local.record_response(request, at(now), &head);
    };
    let first = send(&mut local, 0);
    dated(&mut local, first, 0, 2, 200, reading(1, 0, 10), None);
    let early = send(&mut local, 8);
    dated(&mut local, early, 8, 0, 429, reading(1, 0, 10), Some(2));
    let probe = send(&mut local, 11);
    dated(&mut local, probe, 11, 2, 200, reading(1, 0, 20), None);
    assert_eq!(until(&local, 12), Some(19));
}

/// Sends as many requests as may be in flight, and returns their number.
fn fill(local: &mut Local, now: i64) -> usize {
    let mut count = 0;
    while count < 10_000 && matches!(decide(local, now), Decision::Send { .. }) {
        let _ = send(local, now);
        count += 1;
    }
    count
}

pub(crate) fn with_window(limit: u64, remaining: u64) -> Local {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(limit, remaining, 60));
    local
}

#[test]
fn the_number_in_flight_depends_on_the_rest_and_the_latency() {
    assert_eq!(fill(&mut with_window(60, 59), 1), 11);
    assert_eq!(fill(&mut with_window(161, 160), 1), 32);
    assert_eq!(fill(&mut with_window(1_000, 999), 1), 124);
    assert_eq!(fill(&mut with_window(1_000_000, 999_999), 1), 4_096);
    let mut slow = with_window(1_000, 999);
    slow.ledger_mut().set_latency(Duration::from_secs(5));
    assert_eq!(fill(&mut slow, 1), 253);
}

#[test]
fn a_burst_of_others_refuses_too_few_for_a_ban() {
    for left in 1..=40 {
        let in_flight = fill(&mut with_window(left + 1, left), 1) as u64;
        assert_eq!(in_flight, left.min(8), "{left}");
    }
}

#[test]
fn five_may_be_in_flight_while_the_minute_is_unknown() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(100_000, 99_999, 12 * HOUR));
    assert_eq!(fill(&mut local.clone(), 1), 5);
    let plan = Policy {
        plan: Some(Plan::BUSINESS),
        ..Policy::default()
    };
    let decision = (0..6).map(|_| send_with(&mut local, 1, &plan)).count();
    assert_eq!(decision, 6);
}

#[test]
fn a_minutes_quota_stays_known_while_the_day_is_shown() {
    let day = |remaining| reading(500, remaining, 12 * HOUR);
    let mut local = with_window(1_000, 999);
    let over = send(&mut local, 61);
    answer(&mut local, over, 61, day(499));
    assert_eq!(fill(&mut local.clone(), 62), 62);
    let refused = send(&mut local, 62);
    respond(&mut local, refused, 62, 429, day(498), Some(1));
    let probe = send(&mut local, 64);
    answer(&mut local, probe, 64, day(497));
    assert_eq!(fill(&mut local.clone(), 62 + 300), 5);
}

#[test]
fn after_an_unforeseen_429_little_is_in_flight_for_two_minutes() {
    let mut local = with_window(1_000, 999);
    let refused = send(&mut local, 1);
    respond(
        &mut local,
        refused,
        1,
        429,
        reading(1_000, 998, 60),
        Some(1),
    );
    let probe = send(&mut local, 2);
    answer(&mut local, probe, 2, reading(1_000, 997, 60));
    assert_eq!(fill(&mut local.clone(), 3), 2);
    let probe = send(&mut local, 63);
    answer(&mut local, probe, 63, reading(1_000, 999, 120));
    assert_eq!(fill(&mut local.clone(), 63), 8);
    let probe = send(&mut local, 123);
    answer(&mut local, probe, 123, reading(1_000, 999, 180));
    assert_eq!(fill(&mut local.clone(), 123), 124);
}

#[test]
fn less_is_in_flight_beside_others_only_where_little_is_left() {
    let shared = |limit, remaining| {
        let mut local = with_window(limit, remaining);
        local.ledger_mut().set_own_share(0.25, at(1));
        local
    };
    assert_eq!(fill(&mut shared(1_000_000, 900_000), 1), 4_096);
    assert!(fill(&mut shared(1_000, 40), 1) <= 5);
    assert_eq!(
        fill(&mut shared(1_000, 3), 1),
        0,
        "the last ones are left to the others"
    );
    let mut idle = shared(1_000, 900);
    idle.ledger_mut().set_own_share(0.25, at(0));
    assert_eq!(fill(&mut idle, 1), 1, "others may have used all since");
}

#[test]
fn a_client_with_a_part_of_the_quota_leaves_the_rest_to_others() {
    let mut local = with_window(1_000, 900);
    local.ledger_mut().set_own_share(0.25, at(0));
    let half = Policy {
        quota_part: 0.5,
        ..Policy::default()
    };
    for _ in 0..50 {
        let _ = send_with(&mut local, 1, &half);
    }
}

#[test]
fn one_request_checks_the_limits_after_a_suspension() {
    let mut local = with_window(1_000, 999);
    assert!(fill(&mut local.clone(), 1) > 100);
    local.resume();
    assert_eq!(fill(&mut local.clone(), 1), 1);
    let probe = send(&mut local, 1);
    assert!(probe.is_probe());
    answer(&mut local, probe, 1, reading(1_000, 998, 60));
    assert!(fill(&mut local, 1) > 50);
}

#[test]
fn a_window_ends_on_time_after_the_services_clock_went_back() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(2, 1, 60));
    let second = send(&mut local, 1);
    answer(&mut local, second, 1, reading(2, 0, 60));
    assert_eq!(until(&local, 58), Some(60));
    let probe = send(&mut local, 62);
    let back = reading(2, 1, 120 - 2 * HOUR);
    let date = Some(service(62 - 2 * HOUR));
    let head = ResponseHead {
        status: 200,
        date,
        reading: back,
        retry_after: None,
    };
    local.record_response(probe, at(62), &head);
    assert!(matches!(decide(&local, 63), Decision::Send { .. }));
}

#[test]
fn a_block_ends_on_time_where_the_services_clock_is_set() {
    for by in [-2 * HOUR, 2 * HOUR] {
        let mut local = new();
        let first = send(&mut local, 0);
        answer(&mut local, first, 0, None);
        let (one, late) = (send(&mut local, 1), send(&mut local, 1));
        throttle(&mut local, one, 1, 30);
        let date = Some(service(2 + by));
        let head = ResponseHead {
            status: 200,
            date,
            reading: None,
            retry_after: None,
        };
        local.record_response(late, at(2), &head);
        assert_eq!(until(&local, 2), Some(31), "{by}");
    }
}

#[test]
fn the_wait_of_a_server_error_says_nothing_of_the_reset() {
    let mut local = new();
    let request = send(&mut local, 0);
    let mut headers = HeaderMap::new();
    headers.insert("x-ratelimit-limit", HeaderValue::from_static("2"));
    headers.insert("x-ratelimit-remaining", HeaderValue::from_static("0"));
    let reset = HeaderValue::from_static("1800000050");
    headers.insert("x-ratelimit-reset", reset);
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    let head = ResponseHead::read(StatusCode::SERVICE_UNAVAILABLE, &headers, service(0));
    local.record_response(request, at(0), &head);
    assert!(until(&local, 1) >= Some(50));
}
