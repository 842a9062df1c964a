//! Properties of all scenarios.

use std::cell::Cell;

use proptest::prelude::*;

use super::world::run::run;
use super::world::scenarios::{check, conforming, hostile, members};
use super::world::service::Model;
use super::world::setup::Setup;

/// The cases of each test run, and their seed.
const FEW: (u32, u64) = (150, 7);
/// The cases of the full run, and their seed.
const MANY: (u32, u64) = (20_000, 11);

fn keeps_within(setup: &Setup) -> Result<usize, TestCaseError> {
    let out = run(setup);
    // If too many responses in a row are lost, a client cannot know that the quota is used up.
    prop_assume!(2 * out.most_uninformative < setup.model.minute);
    // A sliding window frees one request at a time. If the response to a probe is lost, the client
    // can only send another one, which may be refused.
    let missed = if setup.model.sliding {
        out.uninformative
    } else {
        0
    };
    prop_assert!(
        out.refusals <= out.unforeseen + missed,
        "{} refusals",
        out.refusals
    );
    prop_assert_eq!(out.undone, 0, "jobs whose wait never ended");
    prop_assert_eq!(out.left_over, 0, "reservations at rest");
    prop_assert!(out.most_while_unknown <= 1, "more than one probe");
    Ok(out.times.len())
}

/// The same for processes that share a record.
fn among_members(setup: &Setup) -> Result<usize, TestCaseError> {
    let out = run(setup);
    prop_assume!(2 * out.most_uninformative < setup.model.minute);
    let missed = if setup.model.sliding {
        out.uninformative
    } else {
        0
    };
    prop_assert!(
        out.refusals <= out.unforeseen + missed,
        "{} refusals",
        out.refusals
    );
    prop_assert_eq!(out.undone, 0, "jobs whose wait never ended");
    prop_assert!(
        out.largest_record <= 4_000,
        "a record of {} bytes",
        out.largest_record
    );
    Ok(out.times.len())
}

fn ends_without_a_ban(setup: &Setup) -> Result<(), TestCaseError> {
    let out = run(setup);
    prop_assert_eq!(out.undone, 0, "jobs whose wait never ended");
    let model = &setup.model;
    // Members cannot know that the quota is used up if most responses are lost, if a window slides,
    // or if their first requests use up most of the quota.
    let loses_most = 2 * out.uninformative >= out.times.len() as u64
        || 2 * out.most_uninformative >= model.minute;
    if !loses_most && !model.sliding && model.minute >= 60 {
        prop_assert_eq!(out.bans, 0, "bans");
    }
    Ok(())
}

fn obeys(setup: &Setup) -> Result<usize, TestCaseError> {
    let out = run(setup);
    prop_assert_eq!(
        out.sent_while_blocked,
        0,
        "requests sent before Retry-After elapsed"
    );
    if out.undone == 0 {
        prop_assert_eq!(out.left_over, 0, "reservations at rest");
    }
    Ok(out.times.len())
}

#[test]
fn a_sole_user_is_never_refused_and_every_wait_ends() {
    check(conforming(), FEW, |setup| keeps_within(&setup).map(drop));
}

#[test]
fn members_are_never_refused_and_every_wait_ends() {
    check(members(), FEW, |setup| among_members(&setup).map(drop));
}

/// Members without their store may be refused, but none of them waits for ever, and the key is not
/// banned if enough responses come.
#[test]
fn members_without_their_store_end_every_wait() {
    check(members(), FEW, |mut setup| {
        setup.outage = 0..i64::MAX;
        // A day's quota that is never used up: in a wait for the next day, members try the store each
        // second, which would take long to simulate.
        setup.model.day = Model::new(60).day;
        ends_without_a_ban(&setup)
    });
}

#[test]
fn nothing_is_sent_while_told_to_wait_whatever_the_service_does() {
    check(hostile(), FEW, |setup| obeys(&setup).map(drop));
}

#[test]
fn the_wall_clock_changes_nothing_where_the_service_has_one() {
    check((conforming(), any::<i32>()), FEW, |(mut setup, seconds)| {
        // A plan counts by the service's minutes, and only the first response shows when these
        // begin.
        setup.policy.plan = None;
        let one = run(&setup);
        setup.wall = i64::from(seconds) * 1_000_000;
        prop_assert_eq!(one.times, run(&setup).times);
        Ok(())
    });
}

#[test]
#[ignore = "over a million requests: run it in release"]
fn a_million_requests_and_nothing_refused_or_sent_too_early() {
    let (kept, obeyed) = (Cell::new(0), Cell::new(0));
    check(conforming(), MANY, |setup| {
        kept.set(kept.get() + keeps_within(&setup)?);
        Ok(())
    });
    check(hostile(), MANY, |setup| {
        obeyed.set(obeyed.get() + obeys(&setup)?);
        Ok(())
    });
    let shared = Cell::new(0);
    check(members(), (MANY.0 / 4, MANY.1), |setup| {
        shared.set(shared.get() + among_members(&setup)?);
        Ok(())
    });
    println!(
        "{} requests of members that share a key, 0 refused",
        shared.get()
    );
    println!(
        "{} requests to services that conform, 0 refused",
        kept.get()
    );
    println!(
        "{} to services that do not, 0 sent before Retry-After elapsed",
        obeyed.get()
    );
    assert!(kept.get() + obeyed.get() > 1_000_000);
}
