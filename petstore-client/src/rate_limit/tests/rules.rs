//! Tests of the ledger's rules for a lone process.

use super::story::{HOUR, Story, reading};
use crate::rate_limit::quota::Report;
use crate::rate_limit::view::{BlockReason, Quota, QuotaWindow, WaitReason};

const DAY: i64 = 24 * HOUR;

// What a response says of the quotas.

#[test]
fn a_quota_that_is_not_described_is_forgotten_after_its_reset() {
    for (second, expected) in [(9, &[(5, 3), (300, 299)][..]), (11, &[(300, 299)])] {
        let mut story = Story::new();
        let first = story.send();
        story.answer(first, reading(5, 4, 10));
        let second = story.at(second).send();
        story.answer(second, reading(300, 299, 60));
        assert_eq!(story.windows(), expected);
    }
}

#[test]
fn a_late_response_may_only_lower_the_figure() {
    let mut story = Story::with_window(100, 99);
    let (one, other) = (story.at(21).send(), story.send());
    story.at(22).answer(other, reading(100, 97, 60));
    story.answer(one, reading(100, 98, 60));
    assert_eq!(story.windows(), [(100, 97)]);
}

#[test]
fn a_quota_that_is_not_described_is_counted_down() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, reading(1_000, 9, 12 * HOUR));
    for second in 1..4 {
        let request = story.at(second).send();
        story.answer(request, reading(60, 59, 60));
    }
    assert_eq!(story.windows(), [(60, 59), (1_000, 6)]);
}

#[test]
fn figures_are_of_one_window_also_beside_a_day_that_is_known() {
    let mut story = Story::with_window(60, 59);
    let day = story.at(1).send();
    story.answer(day, reading(1_000, 500, 12 * HOUR));
    let next = story.at(2).send();
    story.answer(next, reading(60, 57, 60));
    assert_eq!(story.windows(), [(60, 57), (1_000, 499)]);
}

#[test]
fn the_four_windows_that_leave_the_least_are_kept() {
    let mut story = Story::new();
    for (limit, remaining) in [(10, 10), (20, 8), (30, 7), (40, 6), (50, 5)] {
        let request = story.send();
        story.answer(request, reading(limit, remaining, 60));
    }
    assert_eq!(story.windows(), [(20, 5), (30, 5), (40, 5), (50, 5)]);
}

#[test]
fn a_figure_of_a_window_that_is_over_opens_nothing() {
    for (second, shown) in [(10, 1), (11, 0)] {
        let mut story = Story::new();
        let slow = story.send();
        story.at(second).answer(slow, reading(60, 59, 10));
        assert_eq!(story.windows().len(), shown, "{second}");
    }
}

#[test]
fn resets_up_to_two_seconds_apart_are_of_one_window() {
    for (apart, left) in [(-2_001, 95), (-2_000, 90), (2_000, 90), (2_001, 95)] {
        let mut story = Story::with_window(100, 90);
        let next = story.at(1).send();
        let mut other = reading(100, 95, 60);
        other = other.map(|mut reading| {
            reading.reset = reading.reset.plus(1_000 * apart);
            reading
        });
        story.answer(next, other);
        assert_eq!(story.windows(), [(100, left)], "{apart} ms");
    }
}

#[test]
fn an_earlier_reset_counts_only_if_the_request_was_sent_since() {
    for (sent, left) in [(1, 99), (2, 50)] {
        let mut story = Story::new();
        let first = story.send();
        story.at(1).answer(first, reading(100, 99, 60));
        let request = story.at(sent).send();
        story.at(3).answer(request, reading(100, 50, 50));
        assert_eq!(story.windows(), [(100, left)], "{sent}");
    }
}

#[test]
fn a_401_changes_nothing() {
    let mut story = Story::new();
    let first = story.send();
    story.respond(first, 401, reading(60, 60, 30), None);
    assert!(story.windows().is_empty());
    assert!(story.send().is_probe);
    assert_eq!(story.waits_for(), Some(WaitReason::Probe));
}

#[test]
fn an_unknown_quota_in_a_failure_is_not_the_keys() {
    for status in [408, 414, 431, 500, 503] {
        let mut story = Story::with_window(1_000, 999);
        let failed = story.at(1).send();
        story.respond(failed, status, reading(60, 60, 60), None);
        assert_eq!(story.windows(), [(1_000, 998)], "{status}");
        let failed = story.at(2).send();
        story.respond(failed, status, reading(1_000, 50, 60), None);
        assert_eq!(story.windows(), [(1_000, 50)], "{status}");
    }
}

// Windows and their ends.

#[test]
fn a_window_that_has_ended_is_shown_as_such_with_all_left() {
    let mut story = Story::with_window(60, 9);
    let shown = |story: &Story| {
        let limits = story.limits();
        let left = |windows: &[QuotaWindow]| windows.first().map(|window| window.remaining);
        (left(&limits.windows), left(&limits.ended))
    };
    assert_eq!(shown(story.at(59)), (Some(9), None));
    assert_eq!(shown(story.at(60)), (None, Some(60)));
}

#[test]
fn one_request_asks_a_second_after_a_used_up_window() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, reading(5, 0, 10));
    let minute = BlockReason::Quota(Quota::Minute);
    assert_eq!(story.at_millis(10_999).block(), Some((11, minute)));
    assert!(story.at(11).send().is_probe);
    assert_eq!(story.waits_for(), Some(WaitReason::Probe));
}

#[test]
fn of_two_used_up_quotas_the_later_reset_is_waited_for() {
    let mut story = Story::new();
    story.set(|terms| terms.set_limited(false));
    for reading in [reading(1_000, 0, 12 * HOUR), reading(5, 0, 30)] {
        let request = story.send();
        story.answer(request, reading);
    }
    story.set(|terms| terms.set_limited(true));
    let day = BlockReason::Quota(Quota::Day);
    assert_eq!(story.block(), Some((12 * HOUR + 1, day)));
}

#[test]
fn a_used_up_quota_blocks_also_while_requests_are_in_flight() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, reading(5, 4, 30));
    let (one, _other) = (story.at(1).send(), story.send());
    story.answer(one, reading(5, 0, 30));
    assert_eq!(story.blocked_until(), Some(31));
}

#[test]
fn requests_in_flight_that_may_use_up_a_quota_are_no_block() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, reading(3, 2, 30));
    assert_eq!(story.at(1).ask(9).granted, 2);
    assert_eq!(story.waits_for(), Some(WaitReason::Reserved));
    assert_eq!(story.blocked_until(), None);
}

#[test]
fn a_request_after_one_reset_keeps_within_the_other_quota() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, reading(3, 2, 10));
    let second = story.at(1).send();
    story.answer(second, reading(2, 1, 40_000));
    // The next minute has begun, but the day has room only for this request.
    story.at(11).send();
    assert_eq!(story.waits_for(), Some(WaitReason::Reserved));
}

#[test]
fn after_its_reset_no_more_is_sent_than_the_last_window_left() {
    let story = Story::with_window(2_000, 4);
    assert_eq!(story.clone().at(59).ask(99).granted, 0, "others use it");
    let mut story = Story::with_window(5, 4);
    assert_eq!(story.at(61).ask(99).granted, 4);
    assert_eq!(story.waits_for(), None, "then a probe goes");
    assert!(story.send().is_probe);
}

#[test]
fn a_window_that_opens_late_is_waited_for_longer_the_next_time() {
    for (wait, late) in [(1, 2), (19, 20), (600, 30)] {
        let mut story = Story::new();
        let first = story.send();
        story.answer(first, reading(1, 0, 10));
        let early = story.at(11).send();
        story.respond(early, 429, reading(1, 0, 10), Some(wait));
        let probe = story.at(11 + wait).send();
        let reset = 1_000;
        story.answer(probe, reading(1, 0, reset));
        assert_eq!(story.blocked_until(), Some(reset + late), "{wait}");
    }
}

// 429s.

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
        let mut story = Story::new();
        let first = story.send();
        story.respond(first, 429, reading, wait);
        assert_eq!(story.block(), Some(expected), "{reading:?} {wait:?}");
    }
}

#[test]
fn no_value_blocks_for_longer_than_25_hours() {
    let longest = 25 * HOUR;
    for (reading, wait, end) in [
        (None, Some(99_999_999), longest),
        (reading(1, 0, 20 * DAY), None, longest + 1),
    ] {
        let mut story = Story::new();
        let first = story.send();
        story.respond(first, if wait.is_some() { 429 } else { 200 }, reading, wait);
        assert_eq!(story.at(1).blocked_until(), Some(end));
        assert!(story.at(end).send().is_probe);
    }
}

#[test]
fn a_shorter_wait_does_not_end_a_longer_one() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, None);
    let (one, other) = (story.at(1).send(), story.send());
    story.respond(one, 429, None, Some(30));
    story.respond(other, 429, None, Some(5));
    assert_eq!(story.at(7).blocked_until(), Some(31));
}

#[test]
fn a_late_success_does_not_replace_the_probe_after_a_429() {
    let mut story = Story::with_window(100, 99);
    let (one, other) = (story.at(1).send(), story.send());
    story.at(2).respond(one, 429, None, Some(5));
    story.at(8).answer(other, reading(100, 80, 60));
    assert_eq!(story.may_send(), 1);
    assert!(story.send().is_probe);
}

#[test]
fn a_server_error_blocks_nobody_whatever_it_asks_for() {
    for reading in [None, reading(60, 57, 60)] {
        let mut story = Story::with_window(60, 59);
        let failed = story.at(1).send();
        let head = story.head(503, reading, Some(600));
        story.end(failed, Some(head));
        assert_eq!((story.waits_for(), head.blocked()), (None, None));
        assert_eq!(story.limits().throttled, 0);
    }
}

#[test]
fn without_rate_limiting_only_a_429_is_obeyed() {
    let mut story = Story::with_window(5, 0);
    story.set(|terms| terms.set_limited(false));
    assert_eq!(story.may_send(), 10_000);
    let request = story.at(1).send();
    story.respond(request, 429, None, Some(30));
    assert_eq!(story.at(2).blocked_until(), Some(31));
    assert_eq!(story.at(61).may_send(), 1, "a probe");
}

#[test]
fn a_ban_is_named() {
    let mut story = Story::with_window(100, 99);
    let refused = story.at(1).send();
    story.respond(refused, 429, None, Some(30));
    let report = Report {
        was_banned: true,
        ..story.report(0)
    };
    story.exchange(&report);
    assert_eq!(story.block(), Some((31, BlockReason::Ban)));
}

#[test]
fn a_person_may_send_one_probe_during_a_block() {
    let mut story = Story::with_window(100, 99);
    let refused = story.at(1).send();
    story.respond(refused, 429, None, Some(600));
    let forced = Report {
        forces: true,
        ..story.report(2)
    };
    let answer = story.at(2).exchange(&forced);
    assert_eq!((answer.granted, answer.is_probe), (1, true));
    let again = Report {
        forces: true,
        ..story.report(1)
    };
    assert_eq!(story.exchange(&again).granted, 0);
    let probe = story.sent(true);
    story.answer(probe, reading(100, 98, 60));
    assert_eq!(story.waits_for(), None, "the block is over");
}
