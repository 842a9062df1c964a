//! Tests of how many requests a lone process may have in flight: by what is left, by probes, lost requests and
//! plans.

use super::story::{HOUR, Story, reading};
use crate::rate_limit::quota::Report;
use crate::rate_limit::view::{BlockReason, Plan, Quota, WaitReason};

// How many may be in flight.

#[test]
fn an_eighth_is_in_flight_or_more_if_the_latency_requires_it() {
    for (limit, expected) in [(2, 1), (60, 7), (161, 20), (1_000, 124), (1_000_000, 4_096)] {
        assert_eq!(Story::with_window(limit, limit - 1).may_send(), expected);
    }
    let mut slow = Story::new();
    let first = slow.send();
    slow.at(5).answer(first, reading(1_000, 999, 60));
    // 999 requests, whose round trips take 5 s, have 56 s left.
    assert_eq!(slow.may_send(), 3 * 999 * 5 / 56);
    assert_eq!(slow.at(61).may_send(), 3 * 999 * 5 / 60, "the next minute");
}

#[test]
fn a_burst_of_others_refuses_too_few_for_a_ban() {
    for left in 1..=40 {
        let story = Story::with_window(left + 1, left);
        assert_eq!(story.may_send(), left.min(5), "{left}");
    }
}

#[test]
fn five_may_be_in_flight_while_the_minute_is_unknown() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, None);
    assert_eq!(story.may_send(), 5);
    let second = story.send();
    story.answer(second, reading(100_000, 99_999, 12 * HOUR));
    assert_eq!(story.may_send(), 5);
    story.set(|terms| terms.set_plan(Some(Plan::BUSINESS)));
    assert_eq!(story.may_send(), 1_000 / 8);
}

#[test]
fn a_minutes_quota_stays_known_while_the_day_is_shown() {
    let day = |remaining| reading(500, remaining, 12 * HOUR);
    let mut story = Story::with_window(1_000, 999);
    let over = story.at(61).send();
    story.answer(over, day(499));
    assert_eq!(story.may_send(), 62);
    let refused = story.at(62).send();
    story.respond(refused, 429, day(498), Some(1));
    let probe = story.at(64).send();
    story.answer(probe, day(497));
    assert_eq!(story.at(62 + 600).may_send(), 5);
}

#[test]
fn after_an_unforeseen_429_few_are_in_flight_for_minutes() {
    let mut story = Story::with_window(1_000, 999);
    let refused = story.at(1).send();
    story.respond(refused, 429, reading(1_000, 500, 60), Some(1));
    assert_eq!(story.windows(), [(1_000, 999)], "it contradicts itself");
    let probe = story.at(2).send();
    story.answer(probe, reading(1_000, 998, 60));
    for (minute, expected) in (0..).zip([1, 2, 4, 8, 16, 32, 64, 998 / 8]) {
        let second = 2 + 60 * minute;
        assert_eq!(story.at(second).may_send(), expected, "{minute}");
        let last = 1_000 * (second + 60) - 1;
        assert_eq!(story.at_millis(last).may_send(), expected, "{minute}");
    }
    let refused = story.send();
    story.respond(refused, 429, None, Some(1));
    let second = 3 + 60 * 8;
    let probe = story.at(second).send();
    story.answer(probe, reading(1_000, 999, second + 60));
    assert_eq!(story.may_send(), 1, "that begins again");
}

#[test]
fn beside_others_less_is_in_flight_and_the_last_are_theirs() {
    for (limit, remaining, expected) in [
        (1_000_000, 900_000, 4_096),
        (1_000, 500, (500 - 4) / 16),
        (1_000, 40, 2),
        (1_000, 5, 1),
        (1_000, 4, 0),
        (32, 3, 1),
        (32, 2, 0),
        (10, 1, 1),
    ] {
        let story = Story::with_window(limit, remaining);
        assert_eq!(story.may_send(), expected, "{remaining} of {limit}");
    }
}

#[test]
fn others_are_noticed_and_remembered_for_five_minutes() {
    for (remaining, expected) in [(98, 98 / 8), (97, 93 / 16)] {
        // All but two requests were used by others.
        let mut story = Story::with_window(100, 99);
        let next = story.at(1).send();
        story.answer(next, reading(100, remaining, 60));
        assert_eq!(story.may_send(), expected, "{remaining}");
    }
    let mut story = Story::with_window(100, 90);
    let next = story.at(61).send();
    story.answer(next, reading(100, 99, 120));
    assert_eq!(story.at_millis(299_999).may_send(), (99 - 4) / 16);
    assert_eq!(story.at(300).may_send(), 99 / 8);
    // One in 64 is not noticed.
    for (own, expected) in [(63, (1_000 - 64 - 4) / 16), (64, (1_000 - 65) / 8)] {
        let mut story = Story::with_window(1_000, 999);
        for _ in 2..own {
            let request = story.at(1).send();
            story.answer(request, reading(1_000, 999, 60));
        }
        let request = story.send();
        story.answer(request, reading(1_000, 1_000 - own - 1, 60));
        assert_eq!(story.may_send(), expected, "{own}");
    }
}

// Probes.

#[test]
fn a_probe_that_hangs_is_followed_by_one_each_second() {
    let mut story = Story::new();
    for second in 0..5 {
        if second > 0 {
            story.at_millis(1_000 * second - 1);
            assert_eq!(story.waits_for(), Some(WaitReason::Probe), "{second}");
        }
        assert!(story.at(second).send().is_probe);
        assert_eq!(story.waits_for(), Some(WaitReason::Probe), "{second}");
    }
    assert_eq!(story.at(30).waits_for(), Some(WaitReason::Probe));
    let hung = story.sent(true);
    for _ in 0..5 {
        story.lose(hung);
    }
    assert!(story.send().is_probe, "all have ended");
}

#[test]
fn after_a_429_a_probe_that_hangs_is_waited_for() {
    let mut story = Story::new();
    let first = story.send();
    story.respond(first, 429, None, Some(10));
    assert!(story.at(10).send().is_probe);
    for second in [11, 15, 39] {
        let reason = story.at(second).waits_for();
        assert_eq!(reason, Some(WaitReason::Probe), "{second}");
    }
}

#[test]
fn one_request_checks_a_ledger_that_was_restored() {
    let mut story = Story::with_window(1_000, 999);
    story.ledger = story.ledger.doubted();
    assert_eq!(story.at(1).may_send(), 1);
    let probe = story.send();
    story.answer(probe, reading(1_000, 998, 60));
    assert_eq!((probe.is_probe, story.may_send()), (true, 124));
}

#[test]
fn what_is_forgotten_is_asked_for_again() {
    let mut story = Story::with_window(1_000, 999);
    let refused = story.at(1).send();
    story.respond(refused, 429, None, Some(600));
    let _in_flight = story.sent(false);
    let report = Report {
        forgets: true,
        in_flight: 3,
        ..story.report(1)
    };
    let answer = story.exchange(&report);
    assert_eq!((answer.granted, answer.is_probe), (1, true));
    let limits = story.limits();
    assert_eq!((limits.windows.len(), limits.throttled), (0, 0));
}

// Lost requests.

#[test]
fn lost_requests_count_where_the_next_response_shows_nothing() {
    for (status, reading, left) in [
        (401, reading(7, 3, 60), 56),
        (401, None, 56),
        (404, None, 55),
        (200, reading(60, 54, 60), 54),
    ] {
        let mut story = Story::with_window(60, 59);
        let sent = [(); 3].map(|()| story.at(1).send());
        for lost in sent {
            story.lose(lost);
        }
        assert_eq!(
            (story.windows(), story.limits().unresolved),
            (vec![(60, 56)], 3)
        );
        let next = story.at(2).send();
        story.respond(next, status, reading, None);
        assert_eq!(story.limits().unresolved, 0);
        assert_eq!(story.windows(), [(60, left)], "{status}");
    }
}

#[test]
fn lost_requests_count_in_a_quota_that_is_not_described() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, reading(1_000, 500, 12 * HOUR));
    let second = story.at(1).send();
    story.answer(second, reading(60, 59, 60));
    let lost = story.at(2).send();
    story.lose(lost);
    let next = story.at(4).send();
    story.answer(next, reading(60, 57, 60));
    assert_eq!(story.windows(), [(60, 57), (1_000, 497)]);
}

#[test]
fn a_5xx_without_a_known_quota_counts_its_request_as_lost() {
    for (status, reading, lost) in [
        (499, None, 0),
        (500, None, 1),
        (502, reading(60, 59, 60), 1),
        (500, reading(100, 98, 60), 0),
    ] {
        let mut story = Story::with_window(100, 99);
        let failed = story.at(1).send();
        story.respond(failed, status, reading, None);
        assert_eq!(story.limits().unresolved, lost, "{status}");
    }
}

#[test]
fn a_lost_request_is_settled_by_one_that_did_not_overtake_it() {
    let mut story = Story::with_window(100, 99);
    let (lost, soon) = (story.at(1).send(), story.send());
    story.lose(lost);
    story.answer(soon, reading(100, 98, 60));
    assert_eq!(story.limits().unresolved, 1, "it may still arrive");
    let later = story.at(2).send();
    story.answer(later, reading(100, 96, 60));
    assert_eq!(story.limits().unresolved, 0);
    assert_eq!(story.may_send(), 96 / 8, "no others have sent it");
}

#[test]
fn the_last_requests_wait_until_lost_ones_are_settled() {
    for (remaining, waits) in [(7, Some(WaitReason::Reserved)), (8, None)] {
        let mut story = Story::with_window(remaining + 1, remaining);
        let lost = story.at(1).send();
        story.lose(lost);
        assert_eq!(story.waits_for(), waits, "{remaining}");
        // By now it has arrived, if it ever does. The next response tells.
        assert_eq!(story.at(2).waits_for(), None, "{remaining}");
        story.send();
        assert_eq!(story.waits_for(), Some(WaitReason::Reserved), "{remaining}");
    }
}

// Plans.

#[test]
fn a_plan_counts_the_minute_and_the_day_at_once() {
    let mut story = Story::new();
    story.set(|terms| terms.set_plan(Some(Plan::custom().per_minute(2).per_day(3))));
    let midnight = 16 * HOUR;
    for (second, end) in [(0, None), (1, Some(61)), (61, Some(midnight + 1))] {
        let request = story.at(second).send();
        story.answer(request, None);
        assert_eq!(story.blocked_until(), end, "{second}");
    }
    assert_eq!(story.at(midnight + 1).may_send(), 2);
}

#[test]
fn a_plan_gives_way_to_a_quota_that_a_response_shows() {
    let mut story = Story::new();
    story.set(|terms| terms.set_plan(Some(Plan::FREE)));
    let first = story.send();
    story.answer(first, None);
    assert_eq!(story.may_send(), 59 / 8);
    assert!(
        story.windows().is_empty(),
        "only what is shown is displayed"
    );
    let second = story.at(1).send();
    story.answer(second, reading(800, 799, 60));
    assert_eq!(story.may_send(), 99);
}

#[test]
fn the_very_end_of_a_plans_minute_counts_for_both() {
    let mut story = Story::new();
    story.set(|terms| terms.set_plan(Some(Plan::custom().per_minute(2))));
    let late = story.at_millis(59_500).send();
    story.answer(late, None);
    assert_eq!(story.at(61).may_send(), 1);
    story.ask(0);
    assert_eq!(story.at(121).may_send(), 2);
}

#[test]
fn a_refused_request_uses_nothing_of_a_plan() {
    let mut story = Story::new();
    story.set(|terms| terms.set_plan(Some(Plan::custom().per_minute(2))));
    let first = story.send();
    story.answer(first, None);
    let refused = story.at(1).send();
    story.respond(refused, 429, None, Some(1));
    assert!(story.at(3).send().is_probe);
}

#[test]
fn requests_in_flight_and_lost_ones_count_in_a_plan() {
    let mut story = Story::new();
    story.set(|terms| terms.set_plan(Some(Plan::custom().per_minute(2))));
    let first = story.send();
    story.answer(first, None);
    let lost = story.at(1).send();
    assert_eq!(story.waits_for(), Some(WaitReason::Reserved));
    story.lose(lost);
    let minute = BlockReason::Quota(Quota::Minute);
    assert_eq!(story.block(), Some((61, minute)));
    assert_eq!(story.at(61).waits_for(), None);
}

#[test]
fn a_plan_whose_requests_were_all_lost_is_tried_again() {
    let mut story = Story::new();
    story.set(|terms| terms.set_plan(Some(Plan::custom().per_minute(2))));
    let first = story.send();
    story.answer(first, None);
    for second in [1, 61] {
        let lost = story.at(second).send();
        story.lose(lost);
    }
    assert_eq!(story.at(10 * HOUR).waits_for(), None);
}
