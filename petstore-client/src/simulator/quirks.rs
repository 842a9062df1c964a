//! Tests of unusual services: no ban, and no request before `Retry-After` has elapsed.

use std::iter;

use super::world::client::Contender;
use super::world::run::run;
use super::world::service::{Model, Shows, Wait};
use super::world::setup::{Outcome, Setup};
use super::world::window::SECOND;

/// Runs an unusual service with several seeds. Returns the highest number of refusals.
fn odd(change: impl Fn(&mut Model), tasks: usize) -> u64 {
    let mut most = 0;
    for seed in 0..5 {
        let mut model = Model::new(60);
        change(&mut model);
        let setup = Setup::new(Contender::Limiter, model, tasks, 200, seed);
        let Outcome {
            refusals,
            bans,
            sent_while_blocked,
            undone,
            ..
        } = run(&setup);
        assert_eq!(
            (bans, sent_while_blocked, undone),
            (0, 0, 0),
            "seed {seed}, {refusals} refusals"
        );
        most = most.max(refusals);
    }
    most
}

#[test]
fn remaining_is_counted_before_the_request() {
    assert!(odd(|model| model.counts_before = true, 8) <= 8);
}

#[test]
fn reset_is_rounded_down_and_passes_while_still_limited() {
    // The first of the three resets is assumed too early. After that, the margin is known.
    assert!(
        odd(
            |model| (model.rounds_down, model.phase) = (true, 700_000),
            8
        ) <= 1
    );
}

#[test]
fn a_refusal_shows_something_remaining() {
    odd(
        |model| (model.refuses_with_one, model.whims) = (true, 20),
        2,
    );
}

#[test]
fn retry_after_is_blank() {
    odd(|model| (model.wait, model.whims) = (Wait::Text(""), 20), 8);
}

#[test]
fn retry_after_is_nought() {
    odd(|model| (model.wait, model.whims) = (Wait::Text("0"), 20), 8);
}

#[test]
fn retry_after_is_an_epoch() {
    odd(|model| (model.wait, model.whims) = (Wait::Epoch, 20), 2);
}

#[test]
fn a_sliding_window_rounds_its_reset_down() {
    odd(|model| (model.sliding, model.rounds_down) = (true, true), 8);
}

#[test]
fn only_the_day_is_shown() {
    odd(|model| (model.shows, model.day) = (Shows::Day, 1_000), 8);
}

#[test]
fn only_the_minute_is_shown() {
    odd(|model| (model.shows, model.day) = (Shows::Minute, 1_000), 8);
}

#[test]
fn no_answer_has_a_date() {
    assert_eq!(odd(|model| model.dates = false, 8), 0);
}

#[test]
fn retry_after_is_absent() {
    odd(|model| (model.wait, model.whims) = (Wait::Absent, 20), 8);
}

#[test]
fn the_services_clock_is_set() {
    let set = |by: i64, then: Option<i64>, (tasks, rate, seed)| {
        let steps = |at: i64| {
            let back = then.map(|then| ((at + then) * SECOND, -by * SECOND));
            iter::once((at * SECOND, by * SECOND)).chain(back).collect()
        };
        let finished = |steps| {
            let model = Model {
                steps,
                ..Model::new(rate)
            };
            let out = run(&Setup::new(
                Contender::Limiter,
                model,
                tasks,
                rate * 290 / 60,
                seed,
            ));
            assert!(
                out.refusals <= 2,
                "{by} {then:?} {tasks} {rate} {seed}: {}",
                out.refusals
            );
            assert_eq!((out.bans, out.sent_while_blocked, out.undone), (0, 0, 0));
            out.finished
        };
        // One window may be lost with each step.
        let most = finished(Vec::new()) + (1 + i64::from(then.is_some())) * 62 * SECOND;
        for at in [50, 65, 90, 170] {
            let late = finished(steps(at)) - most;
            assert!(
                late <= 0,
                "{by} {then:?} {tasks} {rate} {seed} {at}: {late}"
            );
        }
    };
    for by in [-604_800, -7_200, -30, -3, 3, 30, 7_200, 604_800] {
        for then in [None, Some(10), Some(100)] {
            for case in [(1, 60, 0), (16, 60, 1), (16, 300, 0), (16, 300, 2)] {
                set(by, then, case);
            }
        }
    }
}

#[test]
fn date_comes_from_another_clock_than_the_windows() {
    for ahead in [-7_200, -30, 30, 7_200] {
        for tasks in [1, 16] {
            assert!(odd(|model| model.date_ahead = ahead * SECOND, tasks) <= 4);
        }
    }
}

#[test]
fn date_is_rounded_up() {
    assert!(odd(|model| model.date_rounds_up = true, 8) <= 4);
}

#[test]
fn some_answers_have_no_headers_or_garbage_in_them() {
    assert!(odd(|model| model.bare = 200, 8) <= 4);
    assert!(odd(|model| model.garbage = 100, 8) <= 4);
}

#[test]
fn a_date_ten_minutes_from_the_resets_costs_no_speed() {
    for ahead in [-600, 600] {
        for tasks in [1, 16, 64] {
            let finished = |date_ahead| {
                let mut model = Model::new(60);
                model.date_ahead = date_ahead;
                let setup = Setup::new(Contender::Limiter, model, tasks, 300, 1);
                let outcome = run(&setup);
                assert_eq!((outcome.refusals, outcome.undone), (0, 0), "{date_ahead}");
                outcome.finished
            };
            let (odd, plain) = (finished(ahead * SECOND), finished(0));
            assert!(odd <= plain + 2 * SECOND, "{ahead} {tasks}: {odd} {plain}");
        }
    }
}
