//! Random scenarios from proptest, which shrinks failing ones.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

use super::client::Contender;
use super::network::{End, Network, RoundTrip};
use super::service::{Model, Shows, Wait};
use super::setup::{NOON, Setup};
use super::window::{DAY, MINUTE, SECOND};
use crate::rate_limit::{MaxInFlight, Plan};

const MILLI: i64 = 1_000;
const HOUR: i64 = 60 * MINUTE;
/// The shortest round trip.
const ROUND_TRIP: i64 = 50 * MILLI;

/// Tries as many cases as `cases`. They are the same in each run, unless `PROPTEST_RNG_SEED` names
/// another seed.
pub(crate) fn check<S: Strategy>(
    strategy: S,
    (cases, seed): (u32, u64),
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: Debug,
{
    let default = Config::default();
    let seed = match default.rng_seed {
        RngSeed::Random => seed,
        RngSeed::Fixed(other) => other,
    };
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        max_global_rejects: u32::MAX,
        ..default
    };
    match TestRunner::new(config).run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => {
            panic!("{why}\nin the smallest case found, with PROPTEST_RNG_SEED={seed}: {case:#?}")
        }
        Err(error) => panic!("{error}"),
    }
}

/// Generates a service that keeps to the specification, and one process that is the only user of
/// its key and may know its plan. Requests take any time, overtake each other, get lost, are given
/// up, or are answered by a 500 without headers.
pub(in crate::simulator) fn conforming() -> impl Strategy<Value = Setup> {
    let model = (
        select(vec![60, 300, 1_000, 12, 4]),
        any::<bool>(),
        0..MINUTE,
        0..300_u32,
    );
    let quotas = select(vec![Quotas::Minute, Quotas::Tightest, Quotas::OnlyMinute]);
    (model, quotas, any::<bool>(), setup(trips(true)))
        .prop_map(
            |((minute, sliding, phase, errors), quotas, plan, mut setup)| {
                let model = &mut setup.model;
                (model.minute, model.sliding, model.phase, model.errors) =
                    (minute, sliding, phase, errors);
                match quotas {
                    Quotas::Minute => {}
                    // If two windows slide, nothing can be known of the one that is not shown.
                    Quotas::Tightest => {
                        (model.day, model.sliding) = (3 * minute + minute / 2, false);
                    }
                    Quotas::OnlyMinute => model.shows = Shows::Minute,
                }
                setup.policy.plan =
                    plan.then(|| Plan::custom().per_minute(minute).per_day(setup.model.day));
                setup
            },
        )
        .prop_filter("a day of a few requests takes long", |setup| {
            setup.jobs < 20 * setup.model.minute
        })
}

/// The same with several processes that share a record.
pub(in crate::simulator) fn members() -> impl Strategy<Value = Setup> {
    (conforming(), 2..6_usize).prop_map(|(mut setup, processes)| {
        (setup.processes, setup.shared) = (processes, true);
        // Each process counts a plan alone.
        setup.policy.plan = None;
        setup.jobs = setup.jobs.div_ceil(processes as u64);
        setup
    })
}

/// Which quotas are in force, and shown.
#[derive(Debug, Clone, Copy)]
enum Quotas {
    Minute,
    /// The minute's and the day's, and the tighter of them is shown.
    Tightest,
    OnlyMinute,
}

/// Generates an unusual service, which may also refuse at random.
pub(in crate::simulator) fn hostile() -> impl Strategy<Value = Setup> {
    let shown = select(vec![Shows::Tightest, Shows::Minute, Shows::Day]);
    let waits = [
        Wait::Seconds,
        Wait::Any,
        Wait::Epoch,
        Wait::Absent,
        Wait::Text(""),
        Wait::Text("0"),
    ];
    let clock = (any::<bool>(), -HOUR..HOUR, vec((0..HOUR, -DAY..DAY), 0..3));
    let chances = [0..300_u32, 0..300, 0..300, 0..1_000];
    let flags = any::<[bool; 5]>();
    (
        shown,
        select(waits.to_vec()),
        clock,
        chances,
        flags,
        0..MINUTE,
        setup(trips(false)),
    )
        .prop_map(|(shows, wait, clock, chances, flags, phase, mut setup)| {
            setup.horizon = 4 * HOUR;
            let day = setup.model.minute * 10;
            setup.model = Model {
                shows,
                wait,
                phase,
                day,
                ..setup.model
            };
            let model = &mut setup.model;
            (model.dates, model.date_ahead, model.steps) = clock;
            // Without `Date`, only the wall clock says what an epoch means.
            model.dates |= wait == Wait::Epoch;
            [model.errors, model.bare, model.garbage, model.whims] = chances;
            let [
                sliding,
                rounds_down,
                date_up,
                counts_before,
                refuses_with_one,
            ] = flags;
            (model.sliding, model.rounds_down, model.date_rounds_up) =
                (sliding, rounds_down, date_up);
            (model.counts_before, model.refuses_with_one) = (counts_before, refuses_with_one);
            setup
        })
}

fn setup(trips: impl Strategy<Value = Vec<RoundTrip>>) -> impl Strategy<Value = Setup> {
    let crowd = (1..60_usize, 1..700_u64, proptest::option::of(1..9_u32));
    (crowd, trips, -2 * HOUR..2 * HOUR, 0..MINUTE, any::<u64>()).prop_map(
        |((tasks, jobs, most), trips, wall, start, seed)| {
            let mut setup = Setup::new(Contender::Limiter, Model::new(60), tasks, jobs, seed);
            (setup.network, setup.wall, setup.start) = (Network::List(trips), wall, NOON + start);
            setup.policy.max_in_flight = most.map(MaxInFlight::new);
            setup
        },
    )
}

/// Generates round trips. With `in_order`, requests sent after one was given up do not reach the
/// service before it.
fn trips(in_order: bool) -> impl Strategy<Value = Vec<RoundTrip>> {
    let way = || prop_oneof![0..100 * MILLI, 0..10 * SECOND];
    let latest = if in_order { 1 } else { 10 * SECOND };
    let answered = (way(), way()).prop_map(|(there, back)| (there, back, End::Answered));
    let cancelled = (0..latest, way(), 0..5 * SECOND)
        .prop_map(|(there, back, after)| (there, back, End::Cancelled(after)));
    let lost_there = (0..35 * SECOND).prop_map(|after| (0, 0, End::LostThere(after)));
    let lost_back =
        (way(), 0..35 * SECOND).prop_map(|(there, after)| (there, 0, End::LostBack(after)));
    let dropped = Just((0, 0, End::Dropped));
    let round_trip =
        prop_oneof![6 => answered, 2 => cancelled, 1 => lost_there, 1 => lost_back, 1 => dropped]
            .prop_map(|(there, back, end)| RoundTrip {
                there,
                back: back.max(ROUND_TRIP - there),
                end,
            });
    vec(round_trip, 1..12)
}
