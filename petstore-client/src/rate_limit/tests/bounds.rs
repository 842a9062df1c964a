//! Tests of the constants in the ledger's rules: the behaviour just below and just above each one.

use std::time::Duration;

use super::rules::{
    HOUR, answer, at, decide, new, reading, respond, send, send_with, service, throttle, until,
    with_window,
};
use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::decision::{self, Decision, InFlight};
use crate::rate_limit::quota::local::Local;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::Reading;
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::shared::members::Members;
use crate::rate_limit::shared::slot::MemberId;
use crate::rate_limit::view::{BlockReason, Plan, Quota, WaitReason};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn plan(plan: Plan) -> Policy {
    Policy {
        plan: Some(plan),
        ..Policy::default()
    }
}

/// Returns how many requests may be sent at once, and how many the quotas leave.
fn allowed(local: &Local, now: LocalTime) -> (u64, u64) {
    let in_flight = InFlight {
        all: local.in_flight(),
        ..InFlight::default()
    };
    let policy = Policy::default();
    let allowance = decision::allowance(local.ledger(), in_flight, now, &policy).unwrap();
    (allowance.requests(), allowance.left())
}

fn limits(local: &Local) -> Vec<u64> {
    local.ledger().windows().iter().map(Window::limit).collect()
}

#[test]
fn a_429_blocks_as_long_as_it_says_and_names_the_quota() {
    use BlockReason::Unknown;
    let (minute, day) = (
        BlockReason::Quota(Quota::Minute),
        BlockReason::Quota(Quota::Day),
    );
    for (reading, wait, expected) in [
        (None, None, (60, Unknown)),
        (None, Some(0), (1, Unknown)),
        (reading(5, 1, 20), None, (60, Unknown)),
        (reading(5, 0, 20), None, (20, minute)),
        (reading(5, 0, 20), Some(18), (18, minute)),
        (reading(5, 0, 20), Some(22), (22, minute)),
        (reading(5, 0, 20), Some(23), (23, Unknown)),
        (reading(5, 0, 12 * HOUR), None, (12 * HOUR, day)),
    ] {
        let mut local = new();
        let first = send(&mut local, 0);
        respond(&mut local, first, 0, 429, reading, wait);
        let Decision::WaitUntil(block) = decide(&local, 0) else {
            panic!("{reading:?}")
        };
        assert_eq!(
            (block.until, block.reason),
            (at(expected.0), expected.1),
            "{reading:?} {wait:?}"
        );
    }
}

#[test]
fn a_window_that_opens_late_repeatedly_is_waited_for_longer() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(1, 0, 10));
    for (now, reset_margin) in [(10, 1), (11, 2), (14, 2)] {
        let early = send(&mut local, now);
        respond(&mut local, early, now, 429, reading(1, 0, 10), Some(1));
        assert_eq!(
            local.ledger().reset_margin(service(now)),
            secs(reset_margin),
            "{now}"
        );
    }
}

#[test]
fn other_clients_are_remembered_for_five_minutes() {
    let mut local = with_window(100, 90);
    assert_eq!(
        local.ledger().others().own_share(),
        Some((1.0 + 2.0) / (1.0 + 8.0))
    );
    let margins = |local: &Local| [299, 300].map(|now| local.ledger().reset_margin(service(now)));
    assert_eq!(margins(&local), [secs(1), secs(0)]);
    local.ledger_mut().others_mut().assume(true);
    assert_eq!(margins(&local), [secs(1), secs(1)]);
}

#[test]
fn much_is_left_above_half_of_the_limit_and_two_thousand() {
    for (limit, remaining, share, is_contested) in [
        (1_000_000, 500_000, 0.25, true),
        (1_000_000, 500_001, 0.25, false),
        (4_000, 2_048, 0.25, true),
        (4_000, 2_049, 0.25, false),
        (1_000, 999, 0.94, true),
        (1_000, 999, 0.95, false),
    ] {
        let mut local = with_window(limit, remaining);
        local.ledger_mut().set_own_share(share, at(0));
        assert_eq!(
            local.ledger().contested_share().is_some(),
            is_contested,
            "{remaining} of {limit}"
        );
    }
}

#[test]
fn a_figure_beside_others_is_old_after_two_round_trips() {
    let mut local = with_window(1_000, 900);
    local.ledger_mut().set_own_share(0.25, at(0));
    for (latency, old) in [(0, 100_000), (1_000, 2_000_000)] {
        local
            .ledger_mut()
            .set_latency(Duration::from_millis(latency));
        let requests = [0, 1].map(|later| allowed(&local, LocalTime(old + later)).0);
        assert_eq!(requests, [44, 1], "{latency} ms");
    }
    let mut few = with_window(1_000, 5);
    few.ledger_mut().set_own_share(0.25, at(0));
    assert_eq!(allowed(&few, at(0)), (1, 2));
}

#[test]
fn of_two_quotas_that_are_used_up_the_later_reset_is_waited_for() {
    let off = Policy {
        rate_limiting: false,
        ..Policy::default()
    };
    let mut local = new();
    for (now, reading) in [(0, reading(1_000, 0, 12 * HOUR)), (1, reading(5, 0, 30))] {
        let request = send_with(&mut local, now, &off);
        answer(&mut local, request, now, reading);
    }
    assert!(until(&local, 1).is_some_and(|end| end >= 12 * HOUR));
}

#[test]
fn an_agreed_share_leaves_nothing_to_other_clients() {
    let mut local = with_window(1_000, 3);
    local.ledger_mut().set_own_share(0.25, at(1));
    let agreed = Policy {
        quota_part: 0.5,
        ..Policy::default()
    };
    assert_eq!(
        local.decide(at(1), &agreed),
        Decision::Send { probe: false }
    );
    assert!(matches!(decide(&local, 1), Decision::WaitUntil(_)));
}

#[test]
fn a_figure_that_does_not_fall_is_believed() {
    let mut local = with_window(60, 59);
    for now in 1..4 {
        let request = send(&mut local, now);
        answer(&mut local, request, now, reading(60, 59, 60));
    }
    assert_eq!(local.left_in(&local.ledger().windows()[0]), 59);
}

#[test]
fn the_rest_of_an_ended_window_may_be_sent_at_once() {
    let mut local = with_window(2_000, 1_999);
    local.ledger_mut().set_latency(secs(5));
    assert_eq!(allowed(&local, at(60)), (3 * 1_999 * 5 / 60, 1_999));
    local.ledger_mut().set_latency(Duration::from_millis(100));
    assert_eq!(
        allowed(&local, at(59)),
        (3 * 1_999 / 10, 1_999),
        "a second before the reset"
    );
}

#[test]
fn some_requests_are_kept_for_asking_what_became_of_lost_ones() {
    for (remaining, is_kept) in [(6, true), (7, false)] {
        let mut local = with_window(7, remaining);
        let lost = send(&mut local, 1);
        local.record_lost(lost, at(1));
        let wait = Decision::WaitForResponse(WaitReason::Reserved);
        assert_eq!(decide(&local, 1) == wait, is_kept, "{remaining}");
        if !is_kept {
            // The lost request must have arrived by now, and another request is in flight.
            let _asking = send(&mut local, 2);
            assert_eq!(decide(&local, 2), wait);
        }
    }
}

#[test]
fn a_lost_request_counts_from_two_seconds_before_the_window() {
    let midnight = 16 * HOUR;
    let (minute, day) = (Plan::custom().per_minute(1), Plan::custom().per_day(1));
    for (lost_at, now, plan_of, end) in [
        (57, 61, minute, None),
        (58, 61, minute, Some(120)),
        (midnight - 3, midnight + 1, day, None),
        (midnight - 2, midnight + 1, day, Some(midnight + 24 * HOUR)),
    ] {
        let mut local = new();
        let first = send(&mut local, 0);
        answer(&mut local, first, 0, None);
        let lost = send(&mut local, lost_at);
        local.record_lost(lost, at(lost_at));
        let end = end.map(at);
        let found = match local.decide(at(now), &plan(plan_of)) {
            Decision::WaitUntil(block) => Some(block.until),
            _ => None,
        };
        assert_eq!(found, end, "{lost_at}");
    }
}

#[test]
fn a_refused_request_uses_nothing_of_a_plan() {
    let two = plan(Plan::custom().per_minute(2));
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, None);
    let mut refused = local.clone();
    let second = send_with(&mut refused, 1, &two);
    throttle(&mut refused, second, 1, 1);
    assert_eq!(refused.decide(at(3), &two), Decision::Send { probe: true });
    let lost = send_with(&mut local, 1, &two);
    local.record_lost(lost, at(1));
    let asking = send(&mut local, 3);
    answer(&mut local, asking, 3, None);
    let three = plan(Plan::custom().per_minute(3));
    assert!(matches!(
        local.decide(at(4), &three),
        Decision::WaitUntil(_)
    ));
}

#[test]
fn settled_losses_were_not_sent_by_other_clients() {
    let mut local = with_window(100, 99);
    for _ in 0..10 {
        let lost = send(&mut local, 1);
        local.record_lost(lost, at(1));
    }
    let asking = send(&mut local, 3);
    answer(&mut local, asking, 3, reading(100, 88, 60));
    assert_eq!(local.ledger().others().own_share(), Some(1.0));
}

#[test]
fn a_probe_keeps_others_back_until_its_lease_is_over() {
    let off = Policy {
        rate_limiting: false,
        ..Policy::default()
    };
    let mut local = new();
    assert_eq!(local.decide(at(0), &off), Decision::Send { probe: false });
    let _probe = send(&mut local, 0);
    assert_eq!(
        decide(&local, 29),
        Decision::WaitForResponse(WaitReason::Probe)
    );
    assert_eq!(decide(&local, 30), Decision::Send { probe: true });
}

#[test]
fn the_latency_moves_by_a_sixteenth_with_each_response() {
    let mut local = new();
    for (sent, received, latency) in [(0, 1, 1), (2, 19, 2)] {
        let request = send(&mut local, sent);
        answer(&mut local, request, received, reading(100, 90, 60));
        assert_eq!(local.ledger().latency(), secs(latency));
    }
}

#[test]
fn a_response_after_its_lease_settles_nothing() {
    let mut local = with_window(100, 99);
    let slow = send(&mut local, 1);
    local.expire(at(31));
    answer(&mut local, slow, 40, reading(100, 98, 60));
    assert_eq!(
        (local.unresolved(), local.ledger().latency()),
        (1, Duration::ZERO)
    );
}

#[test]
fn a_reservation_is_given_back_at_a_429() {
    let mut local = with_window(100, 99);
    let (refused, unused) = (
        send(&mut local, 1),
        local.reserve(at(1), false, &Policy::default()),
    );
    throttle(&mut local, refused, 1, 30);
    assert!(!local.start(unused, at(1), secs(30)));
    assert_eq!(local.in_flight(), 0);
    local.record_ban();
    let Decision::WaitUntil(block) = decide(&local, 1) else {
        panic!()
    };
    assert_eq!(block.reason, BlockReason::Ban);
}

#[test]
fn a_window_is_over_when_its_reset_has_come() {
    for (now, opened) in [(10, 1), (11, 0)] {
        let mut local = new();
        let slow = send(&mut local, 0);
        answer(&mut local, slow, now, reading(60, 59, 10));
        assert_eq!(local.ledger().windows().len(), opened, "{now}");
    }
    for (now, expected) in [(9, &[5, 300][..]), (10, &[300])] {
        let mut local = new();
        let first = send(&mut local, 0);
        answer(&mut local, first, 0, reading(5, 4, 10));
        let second = send(&mut local, now);
        answer(&mut local, second, now, reading(300, 299, 60));
        assert_eq!(limits(&local), expected, "{now}");
    }
}

#[test]
fn an_old_reading_counts_only_for_a_later_request() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 1, reading(100, 99, 60));
    for (sent, remaining) in [(1, 99), (2, 50)] {
        let request = send(&mut local, sent);
        answer(&mut local, request, 3, reading(100, 50, 50));
        assert_eq!(local.ledger().windows()[0].remaining(), remaining, "{sent}");
    }
}

#[test]
fn the_four_windows_that_leave_the_least_are_kept() {
    let mut local = new();
    for (limit, remaining) in [(10, 10), (20, 8), (30, 7), (40, 6), (50, 5)] {
        let request = send(&mut local, 0);
        answer(&mut local, request, 0, reading(limit, remaining, 60));
    }
    // Windows that no response describes are counted down.
    assert_eq!(limits(&local), [20, 30, 40, 50]);
    let left: Vec<_> = local
        .ledger()
        .windows()
        .iter()
        .map(Window::remaining)
        .collect();
    assert_eq!(left, [5, 5, 5, 5]);
}

#[test]
fn a_record_has_room_for_100_members_and_the_dead_make_room() {
    let mut members = Members::default();
    let new = MemberId(100);
    for id in 0..100 {
        assert!(members.admits(MemberId(id), at(9)), "{id}");
        members.slot(MemberId(id)).set_end(at(5));
    }
    assert_eq!([4, 5].map(|now| members.alive(at(now))), [100, 0]);
    assert!(members.admits(MemberId(0), at(5)));
    assert!(!members.admits(new, at(4)));
    assert_eq!(members.slots().len(), 100);
    assert!(members.admits(new, at(5)));
}

#[test]
fn figures_are_of_one_window_also_beside_a_day_that_is_known() {
    let mut local = with_window(60, 59);
    let day = send(&mut local, 1);
    answer(
        &mut local,
        day,
        1,
        Some(Reading {
            limit: 1_000,
            ..reading(1, 500, 12 * HOUR).unwrap()
        }),
    );
    let next = send(&mut local, 2);
    answer(&mut local, next, 2, reading(60, 57, 60));
    assert_eq!(limits(&local), [60, 1_000]);
}

#[test]
fn a_5xx_without_a_quota_counts_its_request_as_lost() {
    for (status, reading, lost) in [
        (499, None, 0),
        (500, None, 1),
        (502, None, 1),
        (500, reading(100, 99, 60), 0),
    ] {
        let mut local = new();
        let first = send(&mut local, 0);
        respond(&mut local, first, 0, status, reading, None);
        assert_eq!(local.unresolved(), lost, "{status}");
    }
}

#[test]
fn a_late_success_does_not_replace_the_probe_after_a_429() {
    let mut local = new();
    let first = send(&mut local, 0);
    answer(&mut local, first, 0, reading(100, 99, 60));
    let (one, other) = (send(&mut local, 1), send(&mut local, 1));
    throttle(&mut local, one, 2, 5);
    answer(&mut local, other, 8, reading(100, 80, 60));
    assert_eq!(decide(&local, 8), Decision::Send { probe: true });
}
