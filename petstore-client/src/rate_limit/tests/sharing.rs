//! Tests of the ledger's rules for processes that share a key.

use super::story::{ME, OTHER, Story, reading};
use crate::rate_limit::quota::Report;
use crate::rate_limit::quota::instant::LedgerTime;
use crate::rate_limit::quota::reading::Outcome;
use crate::rate_limit::view::WaitReason;

/// Lets each process send one request after another, in turn, until nobody may send any more. Each has this many
/// calls that wait. Returns how many requests each has sent.
fn use_up<const N: usize>(
    story: &mut Story,
    waiting: [u64; N],
    limit: u64,
    reset: i64,
) -> [u64; N] {
    let mut sent = [0; N];
    let mut remaining = story.by(ME).windows()[0].1;
    for who in 1..=N as u64 {
        story.by(who).ask(0);
    }
    loop {
        let before = sent;
        for (who, calls) in (1..).zip(waiting) {
            story.by(who);
            let granted = story.ask(calls).granted;
            sent[usize::try_from(who).unwrap() - 1] += granted;
            let request = story.sent(false);
            for _ in 0..granted {
                remaining -= 1;
                story.answer(request, reading(limit, remaining, reset));
            }
        }
        if sent == before {
            return sent;
        }
    }
}

#[test]
fn two_that_wait_get_equally_many_whoever_asks_for_more() {
    for waiting in [[1, 1], [64, 64], [1, 64], [64, 1]] {
        let mut story = Story::with_window(301, 300);
        let sent = use_up(&mut story, waiting, 301, 60);
        assert_eq!(sent.iter().sum::<u64>(), 300);
        let [fewest, most] = [sent.iter().min().unwrap(), sent.iter().max().unwrap()];
        assert!(most - fewest <= 2, "{waiting:?}: {sent:?}");
    }
}

#[test]
fn what_one_cannot_use_is_the_others() {
    let mut story = Story::with_window(301, 300);
    // With a latency of a second, one task sends at most 60 requests in a minute.
    let slow = story.at(0).send();
    story.at(1).answer(slow, reading(301, 299, 60));
    story.by(OTHER).ask(1);
    assert_eq!(story.by(ME).may_send(), 299 / 8 - 1);
}

#[test]
fn a_process_that_fell_silent_holds_nobody_up() {
    let mut story = Story::with_window(5, 4);
    let request = story.by(OTHER).at(3).send();
    story.answer(request, reading(5, 3, 60));
    story.by(ME);
    assert_eq!(story.at_millis(4_999).may_send(), 2);
    assert_eq!(story.at(5).may_send(), 3);
}

#[test]
fn near_the_reset_nothing_is_kept_for_anybody() {
    let mut story = Story::with_window(5, 4);
    let request = story.by(OTHER).at(58).send();
    story.answer(request, reading(5, 3, 60));
    story.by(ME);
    assert_eq!(story.at_millis(58_999).may_send(), 1);
    assert_eq!(story.at(59).may_send(), 3);
}

#[test]
fn all_that_wait_share_the_places_in_flight() {
    let mut story = Story::with_window(1_000, 999);
    assert_eq!(story.by(OTHER).ask(200).granted, 999 / 8);
    assert_eq!(story.by(ME).waits_for(), Some(WaitReason::Reserved));
    assert_eq!(story.by(ME).ask(200).granted, 0);
    let done = story.by(OTHER).sent(false);
    for used in 0..50 {
        story.answer(done, reading(1_000, 998 - used, 60));
    }
    assert_eq!(
        story.by(OTHER).waits_for(),
        Some(WaitReason::OtherProcesses)
    );
    assert!(story.by(ME).ask(200).granted > 40);
}

#[test]
fn a_newcomer_does_not_go_before_one_that_waits() {
    let mut story = Story::with_window(6, 5);
    assert_eq!(story.by(OTHER).at(3).ask(5).granted, 5);
    assert_eq!(story.by(ME).waits_for(), Some(WaitReason::Reserved));
    story.ask(1);
    let request = story.by(OTHER).sent(false);
    for remaining in [4, 3, 2, 1] {
        story.answer(request, reading(6, remaining, 60));
    }
    // The last request was not sent.
    let other = Report {
        in_flight: 0,
        ..story.by(OTHER).report(0)
    };
    story.exchange(&other);
    assert_eq!(story.by(3).waits_for(), Some(WaitReason::OtherProcesses));
    assert_eq!(story.by(ME).ask(1).granted, 1);
}

#[test]
fn who_got_one_more_gets_it_later_in_the_next_window() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, reading(4, 3, 2));
    assert_eq!(use_up(&mut story, [1, 1], 4, 2), [2, 1]);
    for who in [ME, OTHER] {
        assert_eq!(story.by(who).at(2).ask(1).granted, 0);
    }
    let probe = story.by(ME).at(3).send();
    story.answer(probe, reading(4, 3, 63));
    assert_eq!(use_up(&mut story, [1, 1], 4, 63), [1, 2]);
}

#[test]
fn a_share_is_a_part_of_each_window() {
    let mut story = Story::with_window(101, 100);
    story.by(OTHER).set(|terms| terms.set_share(0.25));
    assert_eq!(use_up(&mut story, [64, 64], 101, 60), [75, 25]);
    let probe = story.by(OTHER).at(61).send();
    story.answer(probe, reading(101, 100, 120));
    assert_eq!(use_up(&mut story, [0, 64], 101, 120), [0, 24]);
    assert_eq!(story.by(OTHER).blocked_until(), Some(121));
    assert_eq!(story.by(ME).waits_for(), None, "the rest is for others");
}

#[test]
fn a_share_of_little_is_one_request() {
    let mut story = Story::with_window(60, 59);
    story.by(OTHER).set(|terms| terms.set_share(0.001));
    let only = story.at(3).send();
    story.answer(only, reading(60, 58, 60));
    assert_eq!(story.blocked_until(), Some(61));
}

#[test]
fn requests_of_a_dead_process_count_as_lost() {
    let mut story = Story::with_window(100, 99);
    assert_eq!(story.by(OTHER).ask(5).granted, 5);
    let counts = |story: &mut Story| {
        story.by(ME).ask(0);
        (story.limits().unresolved, story.ledger.holder_count())
    };
    assert_eq!(counts(story.at(5)), (0, 2));
    assert_eq!(story.windows(), [(100, 94)]);
    assert_eq!(counts(story.at_millis(5_001)), (5, 1));
    assert_eq!(story.windows(), [(100, 94)]);
    let next = story.at(7).send();
    story.answer(next, reading(100, 98, 60));
    assert_eq!(
        (story.limits().unresolved, story.windows()),
        (0, vec![(100, 98)])
    );
}

#[test]
fn a_dead_process_keeps_no_probe() {
    let mut story = Story::new();
    let first = story.by(OTHER).send();
    story.respond(first, 429, None, Some(1));
    assert!(story.at(1).send().is_probe);
    assert_eq!(story.by(ME).at(6).waits_for(), Some(WaitReason::Probe));
    assert!(story.at_millis(6_001).send().is_probe);
}

#[test]
fn a_process_that_leaves_is_gone_at_once() {
    let mut story = Story::with_window(100, 99);
    let request = story.by(OTHER).send();
    story.answer(request, reading(100, 98, 60));
    let report = Report {
        leaves: true,
        ..story.report(0)
    };
    story.exchange(&report);
    assert_eq!(story.ledger.holder_count(), 1);
}

#[test]
fn outcomes_that_arrive_again_are_recorded_once() {
    let mut story = Story::with_window(100, 99);
    assert_eq!(story.at(1).ask(3).granted, 3);
    let lost = Outcome {
        sent_ago: 0,
        ended_ago: 0,
        is_probe: false,
        head: None,
    };
    // The first one was reported by the story.
    for (first_outcome, count, unresolved) in
        [(1, 2, 2), (1, 2, 2), (2, 2, 3), (0, 4, 3), (4, 1, 4)]
    {
        let report = Report {
            first_outcome,
            outcomes: vec![lost; count],
            in_flight: 0,
            ..story.report(0)
        };
        story.exchange(&report);
        assert_eq!(story.limits().unresolved, unresolved, "{first_outcome}");
    }
}

#[test]
fn what_others_have_in_flight_is_not_forgotten() {
    let mut story = Story::with_window(100, 99);
    assert_eq!(story.by(OTHER).ask(3).granted, 3);
    let report = Report {
        forgets: true,
        ..story.by(ME).report(1)
    };
    assert!(story.exchange(&report).is_probe);
    let probe = story.sent(true);
    story.answer(probe, reading(100, 95, 60));
    assert_eq!(story.windows(), [(100, 92)]);
}

#[test]
fn a_process_without_its_store_sends_little_and_leaves_some() {
    for (remaining, expected) in [(20_000, (20_000 - 32) / 128), (100, 1), (33, 1), (32, 0)] {
        let mut story = Story::with_window(20_001, 20_000);
        let next = story.send();
        story.answer(next, reading(20_001, remaining, 60));
        let report = Report {
            is_alone: true,
            ..story.report(999)
        };
        story.ledger.assume_others(LedgerTime(0));
        assert_eq!(story.exchange(&report).granted, expected, "{remaining}");
    }
}

#[test]
fn a_process_asks_again_soon_if_others_could_change_something() {
    const MILLI: i64 = 1_000;
    for (latency, crowd, expected) in [
        (0, 0, 250 * MILLI),
        (0, 1, 5 * MILLI),
        (100, 1, 25 * MILLI),
        (1_000, 1, 50 * MILLI),
        (1_000, 16, 150 * MILLI),
    ] {
        let mut story = Story::new();
        let first = story.send();
        story.at_millis(latency).answer(first, reading(2, 1, 60));
        story.ask(1);
        for other in 0..crowd {
            story.by(OTHER + other).ask(1);
        }
        let answer = story.by(ME).ask(1);
        assert_eq!((answer.granted, answer.pause.length()), (0, expected));
    }
}
