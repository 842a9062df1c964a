//! Processes that share what they know, with the state's own notes and leases.

use super::client::Contender;
use super::service::Model;
use super::setup::{NOON, Outcome, Setup};
use super::window::{MINUTE, SECOND};
use super::world::run;

const WINDOWS: i64 = 6;

/// Lets four processes work through some windows; the first may be killed on the way.
fn four_together(rate: u64, tasks: usize, killed: i64, seed: u64) -> Outcome {
    let mut setup = Setup::new(Contender::Limiter, Model::new(rate), tasks, 1 << 40, seed);
    (setup.processes, setup.shared, setup.killed) = (4, true, killed);
    let late = setup.start.rem_euclid(10 * SECOND);
    (setup.start, setup.horizon) = (NOON + late, WINDOWS * MINUTE - late - 1);
    run(&setup)
}

fn used(outcome: &Outcome, rate: u64) -> f64 {
    outcome.let_in as f64 / (WINDOWS as u64 * rate) as f64
}

#[test]
fn four_that_share_are_never_refused_and_use_all() {
    for (rate, tasks, seed) in [(60, 4, 0), (60, 64, 1), (300, 1, 2), (300, 16, 3)] {
        let outcome = four_together(rate, tasks, i64::MAX, seed);
        let used = used(&outcome, rate);
        assert!(outcome.refusals == 0 && used >= 0.998, "{rate} {tasks}: {used}");
    }
}

#[test]
fn one_that_is_killed_holds_the_others_up_no_longer_than_its_leases_last() {
    for (killed, seed) in [(0, 1), (100, 2), (2 * 60_000, 3), (3 * 60_000 + 40, 4)] {
        let outcome = four_together(60, 16, killed * 1_000, seed);
        let used = used(&outcome, 60);
        // What it had under way may be missing from one window.
        let missing = 17.0 / (WINDOWS as f64 * 60.0);
        assert!(outcome.refusals == 0 && used >= 1.0 - missing, "{killed}: {used}");
    }
}
