//! The oddities that the design lists: each is survived without a ban, and nothing is sent while
//! told to wait.

use super::client::Kind;
use super::service::{Model, Shows, Wait};
use super::setup::{Outcome, Setup};
use super::world::run;

/// Runs some windows of a service that is odd in one way; returns the most refusals.
fn odd(change: impl Fn(&mut Model), tasks: usize) -> u64 {
    let mut most = 0;
    for seed in 0..5 {
        let mut model = Model::new(60);
        change(&mut model);
        let setup = Setup::new(Kind::Gate, model, tasks, 200, seed);
        let Outcome { refusals, bans, defied, undone, .. } = run(&setup);
        assert_eq!((bans, defied, undone), (0, 0, 0), "seed {seed}, {refusals} refusals");
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
    assert!(odd(|model| (model.rounds_down, model.phase) = (true, 700_000), 8) <= 4);
}

#[test]
fn a_refusal_shows_something_remaining() {
    odd(|model| (model.refuses_with_one, model.whims) = (true, 20), 2);
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
