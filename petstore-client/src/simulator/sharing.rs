//! Tests of members that share a key through a store: refusals, used quota and fairness.

use super::world::client::Contender;
use super::world::run::run;
use super::world::service::{Model, Shows};
use super::world::setup::{NOON, Outcome, Setup};
use super::world::window::{MINUTE, SECOND};

/// Members that share a key for some windows.
struct Shared {
    rate: u64,
    members: usize,
    /// The number of tasks of each member, and of the first one.
    tasks: usize,
    first_tasks: usize,
    windows: i64,
    killed: i64,
}

impl Shared {
    fn new(rate: u64, members: usize, tasks: usize) -> Self {
        Self {
            rate,
            members,
            tasks,
            first_tasks: tasks,
            windows: 10,
            killed: i64::MAX,
        }
    }

    fn run(&self, seed: u64) -> Outcome {
        run(&self.setup(seed))
    }

    fn setup(&self, seed: u64) -> Setup {
        let model = Model::new(self.rate);
        let mut setup = Setup::new(Contender::Limiter, model, self.tasks, 1 << 40, seed);
        (setup.processes, setup.shared, setup.killed) = (self.members, true, self.killed);
        setup.first_tasks = self.first_tasks;
        let late = setup.start.rem_euclid(10 * SECOND);
        (setup.start, setup.horizon) = (NOON + late, self.windows * MINUTE - late - 1);
        setup
    }

    fn used(&self, outcome: &Outcome) -> f64 {
        outcome.admitted as f64 / (self.windows as u64 * self.rate) as f64
    }
}

/// Returns the lowest number of finished jobs of a member, divided by the highest.
fn fairness(outcome: &Outcome) -> f64 {
    let (least, most) = (outcome.done.iter().min(), outcome.done.iter().max());
    *least.unwrap() as f64 / *most.unwrap() as f64
}

#[test]
fn members_are_never_refused_use_all_and_get_equal_parts() {
    for (rate, members, tasks, first_tasks) in [
        (60, 4, 4, 4),
        (60, 2, 64, 64),
        (60, 4, 1, 200),
        (300, 4, 16, 16),
        (300, 4, 4, 200),
        (300, 16, 4, 4),
        (1_000, 16, 16, 16),
        (1_000, 2, 2, 256),
    ] {
        let shared = Shared {
            first_tasks,
            ..Shared::new(rate, members, tasks)
        };
        let outcome = shared.run(1);
        let (used, fair) = (shared.used(&outcome), fairness(&outcome));
        let case = format!("{rate} a minute, {members} members, {tasks} tasks ({first_tasks})");
        assert!(outcome.refusals == 0 && used >= 0.995, "{case}: {used:.4}");
        assert!(fair >= 0.8, "{case}: {fair:.3} {:?}", outcome.done);
    }
}

#[test]
fn one_that_is_killed_costs_the_others_its_part_of_a_window() {
    for (killed, seed) in [(0, 1), (100, 2), (2 * 60_000, 3), (3 * 60_000 + 40, 4)] {
        let shared = Shared {
            windows: 6,
            killed: killed * 1_000,
            ..Shared::new(60, 4, 16)
        };
        let outcome = shared.run(seed);
        let used = shared.used(&outcome);
        // The requests that the killed member had in flight or reserved may stay unused in one
        // window.
        let missing = 17.0 / (shared.windows as f64 * 60.0);
        assert!(
            outcome.refusals == 0 && used >= 1.0 - missing,
            "{killed}: {used}"
        );
    }
}

#[test]
fn a_light_user_hardly_waits_beside_greedy_ones() {
    for (rate, members) in [(60, 4), (300, 4), (1_000, 16)] {
        // A third of its equal part, spread over the window.
        let pause = 3 * MINUTE * members as i64 / rate as i64;
        let mut setup = Shared::new(rate, members, 16).setup(1);
        (setup.first_tasks, setup.first_pause) = (1, pause);
        let outcome = run(&setup);
        let mut waits = outcome.first_latencies;
        waits.sort_unstable();
        let late = waits
            .iter()
            .filter(|wait| **wait > MINUTE / 20 + SECOND)
            .count();
        let case = format!("{rate} {members}: {late} of {} waits", waits.len());
        assert!(
            outcome.refusals == 0 && late * 100 <= waits.len() * 5,
            "{case}"
        );
    }
}

#[test]
fn a_member_that_is_stopped_holds_the_others_up_for_a_while() {
    for (from, length) in [(0, 20), (30, 5), (30, 90), (100, 3_000)] {
        let mut setup = Shared::new(60, 4, 16).setup(1);
        setup.stopped = from * SECOND..(from + length) * SECOND;
        let outcome = run(&setup);
        // The member's requests in flight count twice for a while, and its reservations are lost.
        let used = outcome.admitted as f64 / 600.0;
        assert!(
            outcome.refusals <= 1 && used >= 0.93,
            "{from} {length}: {used:.3} {}",
            outcome.refusals
        );
    }
}

#[test]
fn members_go_on_carefully_while_the_store_is_out_of_reach() {
    for (rate, members, tasks) in [(300, 4, 16), (1_000, 4, 64)] {
        for (from, length) in [(20, 5), (50, 30), (65, 200)] {
            let mut setup = Shared::new(rate, members, tasks).setup(1);
            setup.outage = from * SECOND..(from + length) * SECOND;
            let outcome = run(&setup);
            let used = outcome.admitted as f64 / (10 * rate) as f64;
            let case = format!(
                "{rate} {from} {length}: {used:.3}, {} refused",
                outcome.refusals
            );
            assert_eq!((outcome.bans, outcome.sent_while_blocked), (0, 0), "{case}");
            assert!(outcome.refusals <= 3 && used >= 0.9, "{case}");
        }
    }
}

#[test]
fn a_step_of_the_stores_clock_costs_at_most_a_refusal() {
    for by in [-86_400, -3_600, -20, -2, 2, 20, 3_600, 86_400] {
        for at in [10, 55, 61, 100] {
            let mut setup = Shared::new(300, 4, 16).setup(1);
            setup.store_step = (at * SECOND, by * SECOND);
            let outcome = run(&setup);
            let used = outcome.admitted as f64 / 3_000.0;
            let case = format!("{by} {at}: {used:.3}, {} refused", outcome.refusals);
            assert_eq!((outcome.bans, outcome.sent_while_blocked), (0, 0), "{case}");
            assert!(outcome.refusals <= 2 && used >= 0.88, "{case}");
        }
    }
}

#[test]
fn members_beside_an_unshared_client_are_hardly_refused() {
    for (rate, tasks) in [
        (60, 4),
        (300, 4),
        (300, 16),
        (1_000, 4),
        (1_000, 16),
        (1_000, 64),
    ] {
        let (mut refused, mut used) = (0, 1.0_f64);
        for seed in 0..6 {
            let mut setup = Shared::new(rate, 4, tasks).setup(seed);
            setup.strangers = 1;
            let outcome = run(&setup);
            assert_eq!(
                (outcome.bans, outcome.sent_while_blocked),
                (0, 0),
                "{rate} {tasks}"
            );
            refused += outcome.refusals;
            used = used.min(outcome.admitted as f64 / (10 * rate) as f64);
        }
        // In sixty windows, there may be one refusal in five windows, and at 60 a minute one in
        // three.
        let most = if rate == 60 { 20 } else { 12 };
        assert!(
            refused <= most && used >= 0.95,
            "{rate} {tasks}: {refused} refused, {used:.3}"
        );
    }
}

#[test]
fn members_survive_the_oddities_of_services() {
    type Oddity = (&'static str, fn(&mut Model));
    let odd: [Oddity; 6] = [
        ("resets rounded down", |model| {
            (model.rounds_down, model.phase) = (true, 700_000);
        }),
        ("sliding windows", |model| model.sliding = true),
        ("only the day is shown", |model| {
            (model.shows, model.day) = (Shows::Day, 100_000);
        }),
        ("counted before", |model| model.counts_before = true),
        ("no date", |model| model.dates = false),
        ("429s without a reason", |model| model.whims = 20),
    ];
    for (name, change) in odd {
        for (members, tasks) in [(2, 4), (4, 16)] {
            // The others learn late of a 429 that nothing announced. Members with many tasks then
            // have about one ban in each run.
            let (most_bans, least) = match (name, tasks) {
                ("429s without a reason", 4) => (2, 0.5),
                ("429s without a reason", _) => (10, 0.3),
                _ => (0, 0.94),
            };
            let mut bans = 0;
            for seed in 0..8 {
                let mut setup = Shared::new(60, members, tasks).setup(seed);
                change(&mut setup.model);
                let outcome = run(&setup);
                let used = outcome.admitted as f64 / 600.0;
                let refused = outcome.refusals;
                let case = format!("{name}, {members} {tasks}: {used:.3}, {refused} refused");
                assert!(outcome.sent_while_blocked == 0 && used >= least, "{case}");
                bans += outcome.bans;
            }
            assert!(bans <= most_bans, "{name}, {members} {tasks}: {bans} bans");
        }
    }
}

#[test]
#[ignore = "meant for release: it prints a table"]
fn members_on_fresh_seeds() {
    println!(
        "  rate members tasks first   refused   used: least  fairness: least  updates/call  record"
    );
    for rate in [60, 300, 1_000, 20_000] {
        for members in [1, 2, 4, 16, 64] {
            for (tasks, first_tasks) in [(1, 1), (4, 4), (16, 16), (64, 64), (1, 200), (16, 200)] {
                if rate == 20_000 && tasks != 16 {
                    continue;
                }
                let shared = Shared {
                    first_tasks,
                    ..Shared::new(rate, members, tasks)
                };
                let (mut refused, mut used, mut fair) = (0, 1.0_f64, 1.0_f64);
                let (mut updates, mut calls, mut record) = (0, 0, 0);
                for seed in 0..5 {
                    let outcome = shared.run(30_000 + seed);
                    refused += outcome.refusals;
                    used = used.min(shared.used(&outcome));
                    fair = fair.min(fairness(&outcome));
                    (updates, calls) = (updates + outcome.updates, calls + outcome.admitted);
                    record = record.max(outcome.largest_record);
                }
                let each = updates as f64 / calls as f64;
                println!(
                    "{rate:6} {members:7} {tasks:5} {first_tasks:5} {refused:9} {used:13.4} {fair:16.3} {each:13.2} {record:7}"
                );
            }
        }
    }
}
