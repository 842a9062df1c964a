//! The goals of the design, at a size that fits each test run.

use super::client::Kind;
use super::service::Model;
use super::world::{Outcome, Setup, run};

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
            println!("{rate:5} {tasks:4} {:.1} {:.1} {speed:.4}", gate as f64 / 6e6, oracle as f64 / 6e6);
        }
    }
}
