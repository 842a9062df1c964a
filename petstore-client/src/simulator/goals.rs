//! The goals of the design, at a size that fits each test run.

use super::client::Kind;
use super::service::Model;
use super::setup::{Outcome, Setup};
use super::world::run;

const RATES: [u64; 3] = [60, 300, 1_000];
const TASKS: [usize; 3] = [1, 16, 256];

fn finish(kind: Kind, rate: u64, tasks: usize, seed: u64) -> Outcome {
    run(&Setup::new(kind, Model::new(rate), tasks, rate * 290 / 60, seed))
}

#[test]
fn a_sole_user_is_never_refused_and_loses_no_speed() {
    for rate in RATES {
        for tasks in TASKS {
            let (mut gate, mut oracle) = (0, 0);
            for seed in 0..6 {
                let outcome = finish(Kind::Gate, rate, tasks, seed);
                assert_eq!((outcome.refusals, outcome.undone), (0, 0), "{rate} {tasks} {seed}");
                gate += outcome.finished;
                oracle += finish(Kind::Oracle, rate, tasks, seed).finished;
            }
            let speed = oracle as f64 / gate as f64;
            assert!(speed >= 0.995, "{rate} {tasks}: {speed:.4}");
        }
    }
}

/// Returns the refusals in a window and the part of the quota that is used.
fn four_apart(rate: u64, tasks: usize, seed: u64) -> (f64, f64) {
    let windows = 25;
    let mut setup = Setup::new(Kind::Gate, Model::new(rate), tasks, 1 << 40, seed);
    setup.processes = 4;
    let first = 60_000_000 - setup.start.rem_euclid(60_000_000);
    setup.horizon = first + (windows - 1) * 60_000_000 - 1;
    let outcome = run(&setup);
    let used = outcome.let_in as f64 / (windows as u64 * rate) as f64;
    (outcome.refusals as f64 / windows as f64, used)
}

#[test]
fn four_that_do_not_talk_are_hardly_refused_and_use_all() {
    for rate in [300, 1_000] {
        for tasks in [4, 16, 64] {
            let runs = (0..6).map(|seed| four_apart(rate, tasks, seed));
            let (refused, used) = runs.fold((0.0, 0.0), |a, b| (a.0 + b.0 / 6.0, a.1 + b.1 / 6.0));
            assert!(5.0 * refused <= 1.0 && used >= 0.99, "{rate} {tasks}: {refused} {used}");
        }
    }
}

#[test]
fn a_cold_key_costs_one_round_trip() {
    let mut setup = Setup::new(Kind::Gate, Model::new(60), 256, 60, 1);
    setup.start -= setup.start.rem_euclid(60_000_000);
    let gate = run(&setup);
    setup.kind = Kind::Oracle;
    assert!(gate.finished - run(&setup).finished < 400_000);
    assert_eq!((gate.refusals, gate.most_while_unknown), (0, 1));
}
