//! Tests of round trips from a millisecond to five seconds: the used quota compared with an oracle.

use super::world::client::Contender;
use super::world::network::Network;
use super::world::run::run;
use super::world::service::{Model, Shows};
use super::world::setup::{NOON, Outcome, Setup};
use super::world::window::MINUTE;

/// The first request with a key costs one round trip, once.
const WINDOWS: i64 = 12;

fn busy(contender: Contender, model: Model, tasks: usize, way: i64, seed: u64) -> Outcome {
    let mut setup = Setup::new(contender, model, tasks, 1 << 40, seed);
    setup.network = Network::Chance {
        way: (way, way / 10),
        lost: 0,
        cancelled: 0,
        dropped: 0,
    };
    setup.start = NOON;
    setup.horizon = WINDOWS * MINUTE - 1;
    run(&setup)
}

#[test]
fn the_quota_is_used_and_nothing_refused_at_any_latency() {
    for rate in [60, 300, 1_000] {
        for round_trip in [1, 20, 100, 1_000, 5_000] {
            for tasks in [1, 16, 64, 256] {
                let way = round_trip * 1_000 / 2;
                let limiter = busy(Contender::Limiter, Model::new(rate), tasks, way, 1);
                let oracle = busy(Contender::Oracle, Model::new(rate), tasks, way, 1);
                assert_eq!(limiter.refusals, 0, "{rate} {round_trip} ms {tasks}");
                let used = limiter.admitted as f64 / oracle.admitted as f64;
                assert!(
                    used >= 0.99,
                    "{rate} a minute, {round_trip} ms, {tasks} tasks: {used:.4}"
                );
            }
        }
    }
}

#[test]
fn a_hidden_minute_bans_nobody_and_is_mostly_used() {
    let mut hidden = Model::new(60);
    (hidden.shows, hidden.day) = (Shows::Day, 100_000);
    let on_refusal = Model {
        bare: 1_000,
        ..Model::new(60)
    };
    // With 65 requests a minute, one probe and four rounds of 16 use the minute up, and the next
    // round is refused as a whole.
    for (service, rate) in [
        (&hidden, 60),
        (&hidden, 65),
        (&on_refusal, 60),
        (&on_refusal, 65),
    ] {
        for tasks in [1, 16, 64, 256] {
            for seed in 0..4 {
                let model = Model {
                    minute: rate,
                    ..service.clone()
                };
                for dates in [true, false] {
                    let model = Model {
                        dates,
                        ..model.clone()
                    };
                    let case = format!("{:?}, {rate}, {tasks} tasks, {dates}, {seed}", model.shows);
                    let out = busy(Contender::Limiter, model, tasks, 50_000, seed);
                    let used = out.admitted as f64 / (rate as i64 * WINDOWS) as f64;
                    assert_eq!((out.bans, out.sent_while_blocked), (0, 0), "{case}");
                    assert!(used >= 0.75, "{case}: {used:.3}, {} refused", out.refusals);
                }
            }
        }
    }
}

#[test]
fn a_wrong_clock_without_dates_bans_nobody() {
    for seconds in [-3_600, -30, 30, 3_600] {
        for tasks in [1, 16, 64] {
            let mut model = Model::new(60);
            model.dates = false;
            let mut setup = Setup::new(Contender::Limiter, model, tasks, 300, 1);
            (setup.start, setup.wall) = (NOON, seconds * 1_000_000);
            let out = run(&setup);
            assert_eq!((out.bans, out.undone), (0, 0), "{seconds} {tasks}");
            assert!(
                out.refusals <= 5,
                "{seconds} {tasks}: {} refused",
                out.refusals
            );
            let windows = out.finished as f64 / MINUTE as f64;
            assert!(
                windows <= 6.0,
                "{seconds} {tasks}: {windows:.2} windows for 300 requests"
            );
        }
    }
}
