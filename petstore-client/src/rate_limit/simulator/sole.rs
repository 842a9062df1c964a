//! A lone process: it is never refused and loses no speed, whatever the service shows.

use super::service::{RetryAfter, Shows};
use super::table::{Promise, Size, check, run};
use super::world::{Case, Sharing};
use crate::rate_limit::quota::instant::SECOND;

fn lone(minute: u64, tasks: usize) -> Case {
    Case {
        spread: 0.0,
        ..Case::new(minute, 1, tasks, Sharing::Nothing)
    }
}

pub(super) fn full_speed(size: Size) {
    for minute in size.of(&[60, 300, 1_000, 20_000], 300) {
        for tasks in size.of(&[1, 2, 8, 16, 64, 256], 16) {
            let mut case = lone(minute, tasks);
            if minute == 20_000 {
                case.minutes = 2;
            }
            let name = format!("lone, {minute} a minute, {tasks} tasks");
            let outcomes = run(&name, &case, size);
            let oracle = Case {
                sharing: Sharing::Oracle,
                ..case
            };
            for (seed, outcome) in outcomes.iter().enumerate() {
                let best = oracle.run(seed as u64).in_all as f64;
                let speed = outcome.in_all as f64 / best;
                assert_eq!((outcome.refused, outcome.bans), (0, 0), "{name}");
                assert!(speed >= 0.98, "{name}, seed {seed}: {speed}");
            }
        }
    }
}

#[test]
fn a_sole_user_is_never_refused_and_loses_no_speed() {
    full_speed(Size::Usual);
}

/// A lone process has no start-up delay with a store that others could use, too.
pub(super) fn first_requests(size: Size) {
    for minute in size.of(&[60, 300, 20_000], 300) {
        for tasks in size.of(&[1, 16, 64], 16) {
            let without = lone(minute, tasks);
            let with = Case {
                sharing: Sharing::Store(0),
                ..without.clone()
            };
            let name = format!("first, {minute} a minute, {tasks} tasks");
            let with = run(&name, &with, size);
            let without = run(&name, &without, size);
            for (with, without) in with.iter().zip(&without) {
                for (with, without) in with.until.iter().zip(&without.until) {
                    let is_alike = with == without || *with <= without * 1.05 + 0.1;
                    assert!(is_alike, "{name}: {with} s instead of {without} s");
                }
            }
        }
    }
}

#[test]
fn a_sole_user_of_a_store_waits_for_nobody() {
    first_requests(Size::Usual);
}

/// A service with an oddity, its name, and what must hold.
struct Oddity {
    name: &'static str,
    minutes: &'static [u64],
    promise: Promise,
    change: fn(&mut Case),
}

fn oddities() -> Vec<Oddity> {
    let mut oddities = Vec::new();
    let mut add = |name, minutes, promise, change| {
        oddities.push(Oddity {
            name,
            minutes,
            promise,
            change,
        });
    };
    let few = |refused, used| Promise::used(used).refused(refused);
    add("hidden minute", &[60, 300], few(16, 0.5), |case| {
        case.model.day = 10_000;
        case.model.shows = Shows::Day;
    });
    add("hidden day", &[60], few(8, 0.9), |case| {
        case.model.day = 200;
        case.model.shows = Shows::Minute;
    });
    add("no rate headers", &[60], few(20, 0.4), |case| {
        case.model.shows = Shows::Nothing;
    });
    add("no Date", &[60, 300], few(1, 0.75), |case| {
        case.model.has_dates = false;
    });
    add("no Date, wall an hour ahead", &[60], few(4, 0.6), |case| {
        case.model.has_dates = false;
        case.model.wall_off = 3_600 * SECOND;
    });
    add("no Date, wall an hour behind", &[60], few(4, 0.6), |case| {
        case.model.has_dates = false;
        case.model.wall_off = -3_600 * SECOND;
    });
    add("Date ten minutes ahead", &[60], few(4, 0.95), |case| {
        case.model.date_ahead = 600 * SECOND;
    });
    add("Date ten minutes behind", &[60], few(4, 0.95), |case| {
        case.model.date_ahead = -600 * SECOND;
    });
    add("backends four seconds apart", &[60], few(2, 0.9), |case| {
        case.model.skew = 4 * SECOND;
    });
    add("resets rounded down", &[60, 300], few(2, 0.95), |case| {
        case.model.rounds_down = true;
        case.model.phase = 7 * SECOND / 10;
    });
    add("a sliding minute", &[300], few(0, 0.9), |case| {
        case.model.is_sliding = true;
    });
    add("the day is used up", &[300], few(0, 0.99), |case| {
        case.model.day = 700;
    });
    add("one of twenty fails", &[300], few(0, 0.95), |case| {
        case.model.errors = 0.05;
    });
    add("gives up four of ten", &[300], few(1, 0.9), |case| {
        case.gives_up = 0.4;
    });
    add("gives up one of ten", &[60], few(1, 0.9), |case| {
        case.gives_up = 0.1;
    });
    add("a latency of five seconds", &[1_000], few(1, 0.0), |case| {
        case.latency = 5.0;
    });
    add("a wait of zero", &[60], few(12, 0.4), |case| {
        case.model.retry_after = RetryAfter::Zero;
        case.model.whims = 0.02;
    });
    add("no Retry-After", &[60], few(40, 0.2), |case| {
        case.model.retry_after = RetryAfter::Absent;
        case.model.whims = 0.02;
        case.minutes = 20;
    });
    oddities
}

pub(super) fn odd_services(size: Size) {
    for oddity in oddities() {
        for &minute in oddity.minutes {
            for tasks in size.of(&[1, 16, 64, 256], 16) {
                let mut case = lone(minute, tasks);
                (oddity.change)(&mut case);
                let mut promise = oddity.promise;
                if tasks == 1 {
                    promise.used = 0.0;
                }
                let name = format!("{}, {minute} a minute, {tasks} tasks", oddity.name);
                check(&name, &case, promise, size);
            }
        }
    }
}

#[test]
fn an_odd_service_neither_bans_nor_locks_out() {
    odd_services(Size::Usual);
}

/// A `Retry-After` of ten years blocks for 25 hours.
#[test]
fn an_absurd_wait_ends_after_25_hours() {
    let mut case = lone(60, 1);
    case.model.retry_after = RetryAfter::Years;
    case.model.whims = 0.01;
    case.minutes = 60 * 26;
    let outcome = case.run(1);
    assert_eq!(outcome.bans, 0);
    let hours = outcome.until[1] / 3_600.0;
    assert!((25.0..25.1).contains(&hours), "{outcome:?}");
}
