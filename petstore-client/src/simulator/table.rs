//! Prints the table of the guide: `cargo test --release -p petstore-client simulator -- --ignored
//! --nocapture`.

use super::world::client::Contender;
use super::world::run::run;
use super::world::service::Model;
use super::world::setup::Setup;

#[test]
#[ignore = "over a million requests: run it in release"]
fn the_table() {
    println!(" rate tasks policy       seconds refusals late repeats bans of the oracle's speed");
    for rate in [60, 300, 1_000] {
        for tasks in [1, 16, 256] {
            let mut best = 0.0;
            for contender in [
                Contender::Oracle,
                Contender::Limiter,
                Contender::RetryAfter,
                Contender::SharedPause,
                Contender::Backoff,
            ] {
                let (mut time, mut refusals, mut late, mut bans) = (0.0, 0, 0, 0);
                let (jobs, mut undone) = (rate * 29 / 6, 0);
                for seed in 0..10 {
                    let mut setup = Setup::new(contender, Model::new(rate), tasks, jobs, seed);
                    // The horizon is far away, because some policies never finish.
                    setup.horizon = 3_600_000_000;
                    let out = run(&setup);
                    time += out.finished as f64 / 1e7;
                    (refusals, late) = (refusals + out.refusals, late + out.late_repeats);
                    bans += out.bans;
                    undone += jobs.saturating_sub(out.admitted);
                }
                best = if contender == Contender::Oracle {
                    time
                } else {
                    best
                };
                let contender = format!("{contender:?}");
                // A run that is not finished after an hour has no meaningful time.
                let (time, speed) = match undone {
                    0 => (format!("{time:.1}"), format!("{:.4}", best / time)),
                    _ => ("over 3600".to_owned(), "-".to_owned()),
                };
                println!(
                    "{rate:5} {tasks:5} {contender:12} {time:>9} {refusals:8} {late:12} {bans:4} {speed}"
                );
            }
        }
    }
}

#[test]
#[ignore = "meant for release"]
fn a_day_of_a_hundred_thousand() {
    let mut model = Model::new(1_000);
    model.day = 100_000;
    let out = run(&Setup::new(Contender::Limiter, model, 256, 100_000, 1));
    assert_eq!((out.refusals, out.admitted), (0, 100_000));
}
