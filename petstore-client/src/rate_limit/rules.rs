//! Each mechanism of the ledger by itself: taken out, its test here fails.

use std::time::Duration;

use super::clock::{LocalTime, SECOND, ServiceTime};
use super::decision::{Decision, Policy};
use super::ledger::{Ledger, ResponseHead};
use super::outstanding::Reservation;
use super::snapshot::{BlockReason, Plan, Quota, WaitReason};
use super::window::Figure;

const HOUR: i64 = 3_600;
const LEASE: Duration = Duration::from_secs(30);

fn at(seconds: i64) -> LocalTime {
    LocalTime(seconds * SECOND)
}

/// The service's clock shows so many seconds more than the local one, from the first response on.
fn service(seconds: i64) -> ServiceTime {
    ServiceTime((1_800_000_000 + seconds) * SECOND)
}

fn new() -> Ledger {
    Ledger::new(at(0), service(0))
}

fn decide(ledger: &Ledger, now: i64) -> Decision {
    ledger.decide(at(now), &Policy::default())
}

fn send_with(ledger: &mut Ledger, now: i64, policy: &Policy) -> Reservation {
    let decision = ledger.decide(at(now), policy);
    let Decision::Send { probe } = decision else { panic!("{now}: {decision:?}") };
    let mut request = ledger.requests.reserve(at(now), probe);
    assert!(ledger.requests.start(&mut request, at(now), LEASE));
    request
}

fn send(ledger: &mut Ledger, now: i64) -> Reservation {
    send_with(ledger, now, &Policy::default())
}

fn respond(
    ledger: &mut Ledger,
    request: Reservation,
    now: i64,
    status: u16,
    figure: Option<Figure>,
    wait: Option<u64>,
) {
    let retry_after = wait.map(Duration::from_secs);
    let head = ResponseHead { status, date: Some(service(now)), figure, retry_after };
    ledger.record_response(request, at(now), &head, |max| max);
}

fn answer(ledger: &mut Ledger, request: Reservation, now: i64, figure: Option<Figure>) {
    respond(ledger, request, now, 200, figure, None);
}

fn throttle(ledger: &mut Ledger, request: Reservation, now: i64, wait: u64) {
    respond(ledger, request, now, 429, None, Some(wait));
}

fn figure(limit: u64, remaining: u64, reset: i64) -> Option<Figure> {
    Some(Figure { limit, remaining, reset: service(reset) })
}

/// Returns the second until which requests are blocked.
fn until(ledger: &Ledger, now: i64) -> Option<i64> {
    match decide(ledger, now) {
        Decision::WaitUntil(block) => Some(block.until.0 / SECOND),
        _ => None,
    }
}

#[test]
fn a_quota_that_is_not_described_any_more_is_forgotten_after_its_reset() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(5, 0, 10));
    let probe = send(&mut ledger, 12);
    answer(&mut ledger, probe, 12, figure(300, 299, 60));
    let limits: Vec<_> = ledger.windows.iter().map(|window| window.limit).collect();
    assert_eq!(limits, [300]);
}

#[test]
fn a_late_response_may_only_lower_the_figure() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(100, 50, 60));
    let (one, other) = (send(&mut ledger, 21), send(&mut ledger, 21));
    answer(&mut ledger, other, 22, figure(100, 48, 60));
    answer(&mut ledger, one, 22, figure(100, 49, 60));
    assert_eq!(ledger.windows[0].remaining, 48);
}

#[test]
fn a_quota_that_is_not_described_is_counted_down() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(1_000, 9, 12 * HOUR));
    for second in 1..4 {
        let request = send(&mut ledger, second);
        answer(&mut ledger, request, second, figure(60, 60 - 1, 60));
    }
    assert_eq!(ledger.windows[0].remaining, 6);
}

#[test]
fn a_shorter_wait_does_not_end_a_longer_one() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, None);
    let (one, other) = (send(&mut ledger, 1), send(&mut ledger, 1));
    throttle(&mut ledger, one, 1, 30);
    throttle(&mut ledger, other, 1, 5);
    assert_eq!(until(&ledger, 7), Some(31));
}

#[test]
fn what_follows_a_429_waits_longer_and_what_was_in_flight_with_it_does_not() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, None);
    let (one, other) = (send(&mut ledger, 1), send(&mut ledger, 1));
    throttle(&mut ledger, one, 1, 30);
    throttle(&mut ledger, other, 1, 30);
    assert_eq!(until(&ledger, 1), Some(31));
    let probe = send(&mut ledger, 31);
    throttle(&mut ledger, probe, 31, 30);
    assert_eq!(until(&ledger, 31), Some(31 + 30 + 2));
    let probe = send(&mut ledger, 63);
    throttle(&mut ledger, probe, 63, 30);
    assert_eq!(until(&ledger, 63), Some(63 + 30 + 4));
}

#[test]
fn no_value_blocks_for_longer_than_twenty_five_hours_and_then_one_request_asks() {
    let longest = 25 * HOUR;
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    throttle(&mut ledger, first, 0, 99_999_999);
    assert_eq!(until(&ledger, 1), Some(longest));
    assert_eq!(decide(&ledger, longest), Decision::Send { probe: true });
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(1, 0, 20 * 24 * HOUR));
    assert_eq!(until(&ledger, 1), Some(longest));
    assert_eq!(decide(&ledger, longest), Decision::Send { probe: true });
}

#[test]
fn a_server_error_blocks_nobody_whatever_it_asks_for() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(60, 59, 60));
    let failed = send(&mut ledger, 1);
    respond(&mut ledger, failed, 1, 503, None, Some(600));
    assert!(matches!(decide(&ledger, 1), Decision::Send { .. }));
    assert_eq!((ledger.requests.in_flight(), ledger.requests.unresolved()), (0, 1));
    let failed = send(&mut ledger, 2);
    respond(&mut ledger, failed, 2, 503, figure(60, 57, 60), Some(600));
    assert!(matches!(decide(&ledger, 2), Decision::Send { .. }));
    assert_eq!(ledger.throttled, 0);
}

#[test]
fn a_used_up_quota_blocks_also_while_requests_are_in_flight() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(5, 4, 30));
    let (one, _other) = (send(&mut ledger, 1), send(&mut ledger, 1));
    answer(&mut ledger, one, 1, figure(5, 0, 30));
    assert_eq!(until(&ledger, 1), Some(30));
}

#[test]
fn requests_in_flight_are_no_block_where_they_may_use_up_a_window_or_a_plan() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(3, 2, 30));
    let _both = (send(&mut ledger, 1), send(&mut ledger, 1));
    assert_eq!(decide(&ledger, 1), Decision::WaitForResponse(WaitReason::Reserved));
    let plan = Policy { plan: Some(Plan::custom().per_minute(2)), ..Policy::default() };
    let mut ledger = new();
    let first = send_with(&mut ledger, 0, &plan);
    answer(&mut ledger, first, 0, None);
    let _second = send_with(&mut ledger, 1, &plan);
    let decision = ledger.decide(at(1), &plan);
    assert_eq!(decision, Decision::WaitForResponse(WaitReason::Reserved));
}

#[test]
fn a_plan_that_is_used_up_blocks_until_the_next_minute_and_counts_lost_requests() {
    let plan = Policy { plan: Some(Plan::custom().per_minute(2)), ..Policy::default() };
    let mut ledger = new();
    let first = send_with(&mut ledger, 0, &plan);
    answer(&mut ledger, first, 0, None);
    let lost = send_with(&mut ledger, 1, &plan);
    ledger.requests.record_lost(lost, at(1));
    let Decision::WaitUntil(block) = ledger.decide(at(1), &plan) else { panic!() };
    assert_eq!((block.until, block.reason), (at(60), BlockReason::Quota(Quota::Minute)));
    assert!(matches!(ledger.decide(at(60), &plan), Decision::Send { .. }));
}

#[test]
fn without_rate_limiting_a_429_is_obeyed_all_the_same() {
    let off = Policy { rate_limiting: false, ..Policy::default() };
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(5, 0, 30));
    let second = send_with(&mut ledger, 1, &off);
    throttle(&mut ledger, second, 1, 30);
    assert!(matches!(ledger.decide(at(2), &off), Decision::WaitUntil(_)));
}

#[test]
fn a_lease_that_is_over_counts_as_lost_and_so_does_one_from_a_wrong_clock() {
    let mut ledger = new();
    let _killed = send(&mut ledger, 0);
    ledger.requests.expire(at(30));
    assert_eq!((ledger.requests.in_flight(), ledger.requests.unresolved()), (1, 0));
    ledger.requests.expire(at(31));
    assert_eq!((ledger.requests.in_flight(), ledger.requests.unresolved()), (0, 1));
    let _by_a_wrong_clock = send(&mut ledger, HOUR);
    ledger.requests.expire(at(34));
    assert_eq!((ledger.requests.in_flight(), ledger.requests.unresolved()), (0, 2));
}

#[test]
fn a_request_is_lost_only_once() {
    let mut ledger = new();
    let slow = send(&mut ledger, 0);
    ledger.requests.expire(at(60));
    ledger.requests.record_lost(slow, at(60));
    assert_eq!(ledger.requests.unresolved(), 1);
}

#[test]
fn an_unused_reservation_lapses_and_is_not_lost() {
    let mut ledger = new();
    let mut unused = ledger.requests.reserve(at(0), true);
    assert_eq!(decide(&ledger, 0), Decision::WaitForResponse(WaitReason::Probe));
    ledger.requests.expire(at(2));
    assert_eq!(decide(&ledger, 2), Decision::Send { probe: true });
    assert!(!ledger.requests.start(&mut unused, at(2), LEASE));
    ledger.requests.release(unused);
    assert_eq!((ledger.requests.in_flight(), ledger.requests.unresolved()), (0, 0));
}

#[test]
fn a_lost_request_is_settled_by_one_that_cannot_have_been_overtaken() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(100, 99, 60));
    let (lost, soon) = (send(&mut ledger, 1), send(&mut ledger, 1));
    ledger.requests.record_lost(lost, at(1));
    answer(&mut ledger, soon, 1, figure(100, 98, 60));
    assert_eq!(ledger.requests.unresolved(), 1, "the lost one may still arrive");
    let later = send(&mut ledger, 2);
    answer(&mut ledger, later, 2, figure(100, 96, 60));
    assert_eq!(ledger.requests.unresolved(), 0);
    assert_eq!(ledger.own_share, None, "what is missing is not the doing of other clients");
}

#[test]
fn a_401_tells_nothing_of_limits() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    respond(&mut ledger, first, 0, 401, figure(60, 60, 30), None);
    assert!(ledger.windows.is_empty());
    let _probe = send(&mut ledger, 0);
    assert_eq!(decide(&ledger, 0), Decision::WaitForResponse(WaitReason::Probe));
}

#[test]
fn a_figure_of_a_window_that_is_over_opens_nothing() {
    let mut ledger = new();
    let slow = send(&mut ledger, 0);
    answer(&mut ledger, slow, 20, figure(60, 59, 10));
    assert!(ledger.windows.is_empty());
}

#[test]
fn a_days_and_a_minutes_quota_of_the_same_limit_are_two() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(1_000, 9, 12 * HOUR));
    let second = send(&mut ledger, 1);
    answer(&mut ledger, second, 1, figure(1_000, 999, 60));
    assert_eq!(ledger.windows.len(), 2);
}

#[test]
fn one_request_asks_after_the_reset_of_a_window_that_was_used_up() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(1, 0, 10));
    let _probe = send(&mut ledger, 10);
    assert_eq!(decide(&ledger, 10), Decision::WaitForResponse(WaitReason::Probe));
}

#[test]
fn a_request_that_asks_for_one_quota_keeps_within_the_other() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(3, 2, 10));
    let second = send(&mut ledger, 1);
    answer(&mut ledger, second, 1, figure(2, 1, 40_000));
    // Sent in the minute that is over when the next one comes; but the day has room for this only.
    let _last = send(&mut ledger, 9);
    assert_eq!(decide(&ledger, 11), Decision::WaitForResponse(WaitReason::Reserved));
}

#[test]
fn a_window_that_opens_late_is_waited_for_longer_the_next_time() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(1, 0, 10));
    let early = send(&mut ledger, 10);
    respond(&mut ledger, early, 10, 429, figure(1, 0, 10), Some(1));
    let probe = send(&mut ledger, 11);
    answer(&mut ledger, probe, 11, figure(1, 0, 20));
    assert_eq!(until(&ledger, 12), Some(21));
}

/// Fills what may be in flight; returns how many that were.
fn fill(ledger: &mut Ledger, now: i64) -> usize {
    let mut count = 0;
    while count < 10_000 && matches!(decide(ledger, now), Decision::Send { .. }) {
        let _ = send(ledger, now);
        count += 1;
    }
    count
}

fn with_window(limit: u64, remaining: u64) -> Ledger {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(limit, remaining, 60));
    ledger
}

#[test]
fn what_may_be_in_flight_depends_on_what_is_left_and_on_the_latency() {
    assert_eq!(fill(&mut with_window(60, 59), 1), 32);
    assert_eq!(fill(&mut with_window(1_000, 999), 1), 124);
    assert_eq!(fill(&mut with_window(1_000_000, 999_999), 1), 4_096);
    let mut slow = with_window(1_000, 999);
    slow.latency = Duration::from_secs(5);
    assert_eq!(fill(&mut slow, 1), 253);
}

#[test]
fn five_may_be_in_flight_while_the_minutes_quota_is_not_known_and_no_plan_is_named() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(100_000, 99_999, 12 * HOUR));
    assert_eq!(fill(&mut ledger.clone(), 1), 5);
    let plan = Policy { plan: Some(Plan::BUSINESS), ..Policy::default() };
    let decision = (0..6).map(|_| send_with(&mut ledger, 1, &plan)).count();
    assert_eq!(decision, 6);
}

#[test]
fn after_an_unforeseen_429_little_is_in_flight_for_two_minutes() {
    let mut ledger = with_window(1_000, 900);
    let refused = send(&mut ledger, 1);
    respond(&mut ledger, refused, 1, 429, figure(1_000, 899, 60), Some(1));
    let probe = send(&mut ledger, 2);
    answer(&mut ledger, probe, 2, figure(1_000, 898, 60));
    assert_eq!(fill(&mut ledger.clone(), 3), 2);
    let probe = send(&mut ledger, 63);
    answer(&mut ledger, probe, 63, figure(1_000, 999, 120));
    assert_eq!(fill(&mut ledger.clone(), 63), 8);
    let probe = send(&mut ledger, 123);
    answer(&mut ledger, probe, 123, figure(1_000, 999, 180));
    assert_eq!(fill(&mut ledger.clone(), 123), 124);
}

#[test]
fn beside_other_clients_less_is_in_flight_only_where_little_is_left() {
    let shared = |limit, remaining| {
        let mut ledger = with_window(limit, remaining);
        ledger.own_share = Some(0.25);
        ledger
    };
    assert_eq!(fill(&mut shared(1_000_000, 900_000), 1), 4_096);
    assert!(fill(&mut shared(1_000, 40), 1) <= 5);
    assert_eq!(fill(&mut shared(1_000, 3), 1), 0, "the last ones are left to the others");
}

#[test]
fn a_window_that_the_service_set_its_clock_back_in_ends_when_it_was_to_end() {
    let mut ledger = new();
    let first = send(&mut ledger, 0);
    answer(&mut ledger, first, 0, figure(2, 1, 60));
    let second = send(&mut ledger, 1);
    answer(&mut ledger, second, 1, figure(2, 0, 60));
    assert_eq!(until(&ledger, 58), Some(60));
    let probe = send(&mut ledger, 62);
    let back = figure(2, 1, 120 - 2 * HOUR);
    let date = Some(service(62 - 2 * HOUR));
    let head = ResponseHead { status: 200, date, figure: back, retry_after: None };
    ledger.record_response(probe, at(62), &head, |max| max);
    assert!(matches!(decide(&ledger, 63), Decision::Send { .. }));
}

#[test]
fn a_block_ends_when_it_was_to_end_where_the_services_clock_is_set() {
    for by in [-2 * HOUR, 2 * HOUR] {
        let mut ledger = new();
        let first = send(&mut ledger, 0);
        answer(&mut ledger, first, 0, None);
        let (one, late) = (send(&mut ledger, 1), send(&mut ledger, 1));
        throttle(&mut ledger, one, 1, 30);
        let date = Some(service(2 + by));
        let head = ResponseHead { status: 200, date, figure: None, retry_after: None };
        ledger.record_response(late, at(2), &head, |max| max);
        assert_eq!(until(&ledger, 2), Some(31), "{by}");
    }
}
