//! Tests of the ledger with clocks that are wrong or set, and with values that nobody expects.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::story::{HOUR, Story, reading, service};
use crate::cases::cases;
use crate::rate_limit::quota::instant::{DAY, LedgerTime, MINUTE, SECOND, ServiceTime};
use crate::rate_limit::quota::reading::{Outcome, Reading, ResponseHead};
use crate::rate_limit::quota::terms::Terms;
use crate::rate_limit::quota::{Ledger, Report};
use crate::rate_limit::view::Plan;

/// Returns the second until which a used-up quota blocks if its reset is `wall` seconds away by the wall clock, and
/// `date` seconds by `Date`. The first responses may have other resets.
fn end(resets: &[(Option<i64>, i64)]) -> Option<i64> {
    let mut story = Story::new();
    story.set(|terms| terms.set_limited(false));
    for (date, wall) in resets {
        let reset = service(0).plus(wall * SECOND);
        let reading = Reading {
            limit: 60,
            remaining: 0,
            reset,
        };
        let sent = story.send();
        let head = ResponseHead {
            date: date.map(|left| reset.plus(-left * SECOND)),
            ..story.head(200, Some(reading), None)
        };
        story.end(sent, Some(head));
    }
    story.set(|terms| terms.set_limited(true));
    // Nothing is sent in the second after a reset.
    story.blocked_until().map(|end| end - 1)
}

#[test]
fn a_date_that_does_not_fit_the_resets_gives_way_to_the_wall() {
    for (date, wall, expected) in [
        (40, 40, 40),
        (0, 40, 0),
        (61, 40, 61),
        (-1, 40, 40),
        (62, 40, 40),
        (600, 40, 40),
        (12 * HOUR, 40, 40),
        (600, -1, 600),
        (600, 62, 600),
    ] {
        assert_eq!(end(&[(Some(date), wall)]), Some(expected), "{date} {wall}");
    }
}

#[test]
fn without_a_date_an_odd_reset_is_a_minute_away() {
    for (wall, expected) in [
        (&[0][..], 0),
        (&[61], 61),
        (&[62], 60),
        (&[-1], 60),
        (&[HOUR], 60),
        (&[2 * HOUR, 2 * HOUR, 3 * HOUR], 60),
        // A wall clock that was right once is believed.
        (&[1, HOUR], HOUR),
    ] {
        let resets: Vec<_> = wall.iter().map(|wall| (None, *wall)).collect();
        assert_eq!(end(&resets), Some(expected), "{wall:?}");
    }
}

#[test]
fn the_latest_date_counts_unless_another_is_ten_seconds_earlier() {
    for (later, expected) in [
        (-10, 0),
        (-11, -11_000_000),
        (1, 1_000_000),
        (3_600, 3_600_000_000),
    ] {
        let mut story = Story::new();
        for seconds in [0, later] {
            let sent = story.send();
            let mut head = story.head(200, reading(60, 50, seconds + 30), None);
            head.date = Some(service(seconds));
            story.end(sent, Some(head));
        }
        assert_eq!(story.clock_error(), expected, "{later}");
    }
}

#[test]
fn a_window_ends_on_time_after_the_services_clock_went_back() {
    let mut story = Story::new();
    let first = story.send();
    story.answer(first, reading(2, 0, 60));
    let probe = story.at(62).send();
    let mut head = story.head(200, reading(2, 0, 120 - 2 * HOUR), None);
    head.date = Some(service(62 - 2 * HOUR));
    story.end(probe, Some(head));
    assert_eq!(story.blocked_until(), Some(121));
}

#[test]
fn a_used_up_window_ends_whatever_date_another_response_has() {
    for years in [-1, 1, 50] {
        for plan in [None, Some(Plan::custom().per_minute(2))] {
            let mut story = Story::new();
            story.set(|terms| terms.set_plan(plan));
            let first = story.send();
            story.answer(first, reading(2, 1, 60).filter(|_| plan.is_none()));
            let last = story.send();
            // A proxy answers, on a machine whose clock is wrong.
            let mut head = story.head(404, None, None);
            let error = years * 365 * 24 * HOUR * SECOND;
            head.date = head.date.map(|date| date.plus(error));
            story.end(last, Some(head));
            let end = story.blocked_until().unwrap_or(0);
            assert!(end <= 25 * HOUR + 61, "{years} {plan:?}: {end}");
        }
    }
}

#[test]
fn a_block_ends_on_time_where_the_services_clock_is_set() {
    for by in [-2 * HOUR, 2 * HOUR] {
        let mut story = Story::new();
        let first = story.send();
        story.answer(first, None);
        let (one, late) = (story.at(1).send(), story.send());
        story.respond(one, 429, None, Some(30));
        let mut head = story.at(2).head(200, None, None);
        head.date = Some(service(2 + by));
        story.end(late, Some(head));
        assert_eq!(story.blocked_until(), Some(31), "{by}");
    }
}

#[test]
fn a_stores_clock_that_is_set_back_holds_up_nobody() {
    let mut story = Story::new();
    let first = story.at(100).send();
    story.respond(first, 429, None, Some(60));
    // The clock of the store is set back by an hour.
    story.at(100 - HOUR);
    assert_eq!(story.ask(1).pause.length(), 60 * SECOND);
    story.at(159 - HOUR);
    assert_eq!(story.ask(1).pause.length(), SECOND);
    let probe = story.at(160 - HOUR).send();
    story.answer(probe, None);
    assert_eq!(story.waits_for(), None);
}

/// Generates numbers, mostly usual ones or at a bound.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..100_u64,
        1 => select(vec![1_000, u64::MAX / 2, u64::MAX - 1, u64::MAX]),
        1 => any::<u64>(),
    ]
}

/// Generates lengths and instants near another one, or at a bound.
fn time(near: i64) -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => (-2 * MINUTE..2 * MINUTE).prop_map(move |by| near + by),
        1 => (-48 * 60 * MINUTE..48 * 60 * MINUTE).prop_map(move |by| near + by),
        1 => select(vec![0, i64::MIN, i64::MIN + 1, i64::MAX]),
        1 => any::<i64>(),
    ]
}

fn head() -> impl Strategy<Value = ResponseHead> {
    let status = select(vec![
        200_u16,
        200,
        401,
        404,
        429,
        429,
        500,
        503,
        0,
        u16::MAX,
    ]);
    let service = || time(service(0).0).prop_map(ServiceTime);
    let reading = (number(), number(), service()).prop_map(|(limit, remaining, reset)| Reading {
        limit: limit.max(1),
        remaining,
        reset,
    });
    (
        status,
        option::of(service()),
        service(),
        option::of(reading),
        option::of(time(0)),
    )
        .prop_map(|(status, date, wall, reading, retry_after)| ResponseHead {
            status,
            date,
            wall,
            reading,
            retry_after,
        })
}

fn report() -> impl Strategy<Value = Report> {
    let outcome = (time(0), time(0), any::<bool>(), option::of(head()));
    let outcome = outcome.prop_map(|(sent_ago, ended_ago, is_probe, head)| Outcome {
        sent_ago,
        ended_ago,
        is_probe,
        head,
    });
    let share = select(vec![1.0, 1.0, 0.25, 0.0, -1.0, 1e300, f64::NAN]);
    let plans = vec![
        Plan::FREE,
        Plan::custom().per_minute(u64::MAX),
        Plan::custom().per_day(1),
    ];
    let terms = (any::<bool>(), share, option::of(select(plans)));
    let terms = terms.prop_map(|(is_limited, share, plan)| {
        let mut terms = Terms::default();
        terms.set_limited(is_limited);
        terms.set_share(share);
        terms.set_plan(plan);
        terms
    });
    let flags = vec(proptest::bool::weighted(0.2), 6);
    let figures = (1..4_u64, number(), number(), number());
    (figures, vec(outcome, 0..3), flags, terms).prop_map(
        |((holder, first_outcome, in_flight, waiting), outcomes, flags, terms)| Report {
            holder,
            first_outcome,
            outcomes,
            in_flight,
            has_probe: flags[0],
            waiting,
            forces: flags[1],
            was_banned: flags[2],
            is_alone: flags[3],
            leaves: flags[4],
            forgets: flags[5],
            terms,
        },
    )
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn no_report_panics_overflows_or_blocks_for_longer_than_a_day(
        reports in vec((report(), -2 * DAY..2 * DAY), 1..8),
    ) {
        const LONGEST: i64 = (25 * HOUR + 61) * SECOND;
        let mut ledger = Ledger::default();
        for (report, now) in reports {
            let now = LedgerTime(now);
            drop(ledger.clone().snapshot(&report, now));
            let answer = ledger.exchange(&report, now);
            let most = report.waiting.max(u64::from(report.forces));
            prop_assert!(answer.granted <= most, "{:?}", answer);
            let length = answer.pause.length();
            prop_assert!((0..=LONGEST).contains(&length), "{} s", length / SECOND);
        }
    }
}
