//! Tests of requests that are dropped in flight, and may still arrive after others.

use super::world::client::Contender;
use super::world::network::Network;
use super::world::run::run;
use super::world::service::Model;
use super::world::setup::{Outcome, Setup};

fn giving_up(rate: u64, tasks: usize, cancelled: u32, seed: u64) -> Outcome {
    let mut setup = Setup::new(
        Contender::Limiter,
        Model::new(rate),
        tasks,
        rate * 29 / 6,
        seed,
    );
    setup.network = Network::Chance {
        way: (35_000, 25_000),
        lost: 0,
        cancelled,
        dropped: 0,
    };
    run(&setup)
}

#[test]
fn giving_up_four_in_ten_requests_costs_little() {
    for (rate, tasks) in [(60, 16), (60, 256), (300, 16)] {
        let (mut with, mut without) = (0, 0);
        for seed in 100..120 {
            let outcome = giving_up(rate, tasks, 400, seed);
            assert_eq!(
                (outcome.refusals, outcome.undone),
                (0, 0),
                "{rate} {tasks} {seed}"
            );
            with += outcome.finished;
            without += giving_up(rate, tasks, 0, seed).finished;
        }
        let slower = with as f64 / without as f64;
        assert!(slower < 1.1, "{rate} {tasks}: {slower:.3}");
    }
}
