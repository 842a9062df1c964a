//! Tests of a process, or of several members of a record, beside other clients that send many requests
//! at the same moment.

use super::world::client::Contender;
use super::world::run::run;
use super::world::service::Model;
use super::world::setup::{Bursts, NOON, Outcome, Setup};
use super::world::window::{MINUTE, SECOND};

const WINDOWS: i64 = 6;
const SIZES_AND_SEEDS: [(u64, u64); 9] = [
    (10, 0),
    (10, 1),
    (10, 2),
    (20, 3),
    (20, 4),
    (20, 5),
    (40, 6),
    (40, 7),
    (40, 8),
];

/// Runs a process without a store, or this many members of a record.
fn beside_bursts(rate: u64, tasks: usize, size: u64, seed: u64, members: Option<usize>) -> Outcome {
    let mut setup = Setup::new(Contender::Limiter, Model::new(rate), tasks, 1 << 40, seed);
    setup.bursts = Some(Bursts {
        size,
        interval: 4 * SECOND,
    });
    (setup.shared, setup.processes) = (members.is_some(), members.unwrap_or(1));
    (setup.start, setup.horizon) = (NOON, WINDOWS * MINUTE - 1);
    run(&setup)
}

/// Returns how much of the quotas was used by all clients together.
fn part_used(outcome: &Outcome, rate: u64) -> f64 {
    let used = outcome.admitted + outcome.others;
    used as f64 / (rate * WINDOWS as u64) as f64
}

/// Asserts that no burst leads to a ban.
fn survive_bursts(members: Option<usize>, tasks: &[usize]) {
    for rate in [60, 300, 1_000] {
        for &tasks in tasks {
            for size in [10, 20, 40] {
                for seed in 0..2 {
                    let outcome = beside_bursts(rate, tasks, size, seed, members);
                    let part = part_used(&outcome, rate);
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
    survive_bursts(None, &[16, 64, 256]);
}

#[test]
fn bursts_do_not_ban_the_key_of_a_sole_member() {
    survive_bursts(Some(1), &[16, 64, 256]);
}

#[test]
fn bursts_seldom_ban_the_key_of_several_members() {
    let (mut runs, mut bans) = (0, 0);
    for members in [2, 4, 16] {
        for (tasks, rate) in [(4, 60), (16, 300)] {
            for (size, seed) in SIZES_AND_SEEDS {
                let outcome = beside_bursts(rate, tasks, size, seed, Some(members));
                runs += 1;
                bans += outcome.bans;
                let case = format!(
                    "{members} members, {rate} a minute, {tasks} tasks, bursts of {size}, {seed}"
                );
                assert_eq!(outcome.sent_while_blocked, 0, "{case}");
                assert!(
                    outcome.bans > 0 || part_used(&outcome, rate) >= 0.99,
                    "{case}"
                );
            }
        }
    }
    assert!(bans * 50 <= runs, "{bans} bans in {runs} runs");
}
