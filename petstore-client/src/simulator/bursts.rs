//! Tests of one process beside other clients that send many requests at the same moment.

use super::world::client::Contender;
use super::world::run::run;
use super::world::service::Model;
use super::world::setup::{Bursts, NOON, Outcome, Setup};
use super::world::window::{MINUTE, SECOND};

const WINDOWS: i64 = 6;

fn beside_bursts(rate: u64, tasks: usize, size: u64, seed: u64, shared: bool) -> Outcome {
    let mut setup = Setup::new(Contender::Limiter, Model::new(rate), tasks, 1 << 40, seed);
    setup.bursts = Some(Bursts {
        size,
        interval: 4 * SECOND,
    });
    setup.shared = shared;
    (setup.start, setup.horizon) = (NOON, WINDOWS * MINUTE - 1);
    run(&setup)
}

/// Asserts that no burst leads to a ban. `shared` is whether the process has a store.
fn survive_bursts(shared: bool) {
    for rate in [60, 300, 1_000] {
        for tasks in [16, 64, 256] {
            for size in [10, 20, 40] {
                for seed in 0..2 {
                    let outcome = beside_bursts(rate, tasks, size, seed, shared);
                    let used = outcome.admitted + outcome.others;
                    let part = used as f64 / (rate * WINDOWS as u64) as f64;
                    let case = format!(
                        "{rate} a minute, {tasks} tasks, bursts of {size}, {seed}: {part:.3} used, {} refused",
                        outcome.refusals
                    );
                    assert_eq!((outcome.bans, outcome.sent_while_blocked), (0, 0), "{case}");
                    assert!(part >= 0.99, "{case}");
                }
            }
        }
    }
}

#[test]
fn bursts_of_other_clients_do_not_ban_the_key() {
    survive_bursts(false);
}

#[test]
fn bursts_do_not_ban_the_key_of_a_sole_member() {
    survive_bursts(true);
}
