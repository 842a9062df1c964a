//! Tests of the grants to members that share a key.

use std::time::Duration;

use super::rules::{answer, at, reading, send, with_window};
use crate::rate_limit::quota::clock::{LocalTime, SECOND, ServiceTime};
use crate::rate_limit::quota::ledger::Ledger;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::Answer;
use crate::rate_limit::quota::reading::{Block, Reading, RequestOutcome, ResponseHead};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::shared::division::{Claim, OpenWindow};
use crate::rate_limit::shared::members::Members;
use crate::rate_limit::shared::record::Record;
use crate::rate_limit::shared::slot::MemberId;
use crate::rate_limit::shared::update::{Granted, Report, Update};
use crate::rate_limit::view::BlockReason;

const ME: MemberId = MemberId(9);
const OTHER: MemberId = MemberId(1);

/// A record whose only reading, with `used` requests used, is ten seconds old.
fn record(limit: u64, used: u64) -> Record {
    let reading = Reading {
        limit,
        remaining: limit - used,
        reset: ServiceTime(60 * SECOND),
    };
    let answer = Answer {
        outstanding: used,
        ..Answer::at(at(0), ServiceTime(0))
    };
    let window = Window::open(reading, &answer, None);
    let ledger = Ledger::with_window(at(0), ServiceTime(0), window);
    Record::new(ledger, Members::default())
}

/// A record as above, where other clients use the key.
fn contested(limit: u64, used: u64) -> Record {
    let mut record = record(limit, used);
    record.ledger_mut().set_own_share(0.5, at(0));
    record
        .ledger_mut()
        .others_mut()
        .remember(ServiceTime(100 * SECOND));
    record
}

fn update(record: &mut Record, member: MemberId, report: &Report) -> Granted {
    Update::new(member, report, &Policy::default(), at(10)).apply(record)
}

/// Asks for `want` requests. Returns the number of granted ones.
fn ask(record: &mut Record, member: MemberId, want: u64) -> u64 {
    let report = Report {
        want,
        ..Report::default()
    };
    update(record, member, &report).requests
}

#[test]
fn members_that_fell_silent_while_waiting_hold_nobody_up() {
    // The reading is old: one request may go.
    let mut record = contested(1_000, 900);
    for member in 1..=5 {
        let slot = record.members_mut().slot(MemberId(member));
        slot.report(0, 64, 0, at(9));
    }
    record.expire_members(at(10), |_| true);
    assert_eq!(ask(&mut record, ME, 64), 1);
}

#[test]
fn nothing_is_kept_for_others_while_one_request_asks_for_all() {
    let report = Report {
        want: 64,
        ..Report::default()
    };
    let granted = update(&mut Record::default(), ME, &report);
    assert_eq!(
        (
            granted.requests,
            granted.probe,
            granted.is_reserved_for_others
        ),
        (1, true, false)
    );
}

#[test]
fn one_request_goes_at_least_where_little_may_be_in_flight() {
    let mut record = pair(1_000, 100, 0);
    record.members_mut().slot(OTHER).set_reserved(0);
    record.ledger_mut().refusals_mut().set_unforeseen(at(10));
    assert_eq!(ask(&mut record, ME, 64), 1);
}

#[test]
fn those_that_wait_get_half_of_the_room_beside_a_silent_one() {
    // A fifth of what is left may be in flight. The silent member has used less than this one.
    let mut record = pair(60, 50, 0);
    record.members_mut().slot(OTHER).set_reserved(0);
    record.members_mut().slot(ME).grant(9, false);
    assert_eq!(ask(&mut record, ME, 64), 5);
}

#[test]
fn much_may_be_in_flight_beside_others_while_much_is_left() {
    for (limit, used, expected) in [(100_000, 1, 64), (100_000, 99_000, 1), (1_000, 1, 1)] {
        assert_eq!(
            ask(&mut contested(limit, used), ME, 64),
            expected,
            "{used} of {limit} used"
        );
    }
}

/// A record of two members, with this latency in milliseconds. `OTHER` has a request in flight.
fn pair(limit: u64, remaining: u64, latency: u64) -> Record {
    let mut record = record(limit, limit - remaining);
    let latency = Duration::from_millis(latency);
    record.ledger_mut().set_latency(latency);
    record.members_mut().slot(OTHER).set_reserved(1);
    record.members_mut().slot(ME);
    record
}

/// Returns the milliseconds until a member that was granted nothing asks again.
fn again(record: &mut Record, spread: f64) -> i64 {
    let report = Report {
        want: 2,
        jitter: spread,
        ..Report::default()
    };
    let granted = update(record, ME, &report);
    assert_eq!(
        (
            granted.requests,
            granted.probe,
            granted.is_reserved_for_others
        ),
        (0, false, false)
    );
    (granted.retry_at.0 - at(10).0) / 1_000
}

#[test]
fn a_member_asks_again_when_a_response_or_an_end_is_due() {
    for (latency, spread, expected) in [
        (0, 0.0, 100),
        (0, 1.0, 400),
        (500, 0.0, 600),
        (9_000, 0.0, 1_600),
    ] {
        // An eighth of the quota may be in flight, or more if the latency is high.
        let mut record = pair(1_000, 999, latency);
        record.members_mut().slot(OTHER).set_reserved(800);
        let found = again(&mut record, spread);
        assert_eq!(found, expected, "in flight, {latency} {spread}");
    }
    for (latency, since, expected) in [
        (1_000, 0, 1_200),
        (1_000, 960, 250),
        (1_000, 1_100, 275),
        (0, 0, 5),
        (0, 4_000, 1_000),
        (0, 9_000, 1_600),
    ] {
        let mut record = pair(1_000, 900, latency);
        record.ledger_mut().refusals_mut().doubt();
        let granted = LocalTime(at(10).0 - since * 1_000);
        record.members_mut().set_probe(OTHER, granted, at(99));
        let found = again(&mut record, 0.0);
        assert_eq!(found, expected, "a probe, {latency} {since}");
    }
    for (want, weighted_use, spread, expected) in [
        (1, 0, 0.0, 1_600),
        (0, 0, 0.0, 1_000),
        (1, 2, 0.0, 1_000),
        (1, 2, 1.0, 1_300),
    ] {
        let mut record = pair(1_000, 1, 0);
        let other = record.members_mut().slot(OTHER);
        other.set_want(want);
        other.set_use(0, 0, weighted_use);
        record.members_mut().slot(ME).set_use(0, 0, 1);
        let found = again(&mut record, spread);
        assert_eq!(found, expected, "none left, {want} {weighted_use}");
    }
    for (members, seconds, expected) in [
        (1, 1, 1_000),
        (2, 1, 1_300),
        (2, 9, 1_600),
        (2, 160, 10_000),
        (2, 9_999, 60_000),
    ] {
        let mut record = pair(1_000, 900, 0);
        record.members_mut().remove(ME);
        if members == 1 {
            record.members_mut().remove(OTHER);
        }
        let (until, reason) = (at(10 + seconds), BlockReason::Unknown);
        record.ledger_mut().refusals_mut().set_block(Some(Block {
            until,
            named: ServiceTime(0),
            reason,
        }));
        let found = again(&mut record, 1.0);
        assert_eq!(found, expected, "blocked, {members} {seconds}");
    }
}

#[test]
fn members_are_filled_to_one_level_and_the_rest_goes_by_turn() {
    // For each member, its granted and wanted requests and its weighted use; then how many requests
    // are free, and how many each member gets.
    type Case<'c> = (&'c [(u64, u64, u64)], u64, &'c [u64]);
    let cases: &[Case<'_>] = &[
        (&[(0, 10, 0), (0, 10, 0)], 10, &[5, 5]),
        (&[(0, 10, 0), (0, 10, 0)], 99, &[10, 10]),
        (&[(0, 10, 1), (0, 10, 0)], 3, &[1, 2]),
        (&[(0, 10, 0), (0, 10, 0)], 3, &[2, 1]),
        (&[(8, 10, 0), (0, 10, 0)], 10, &[1, 9]),
        (&[(0, 2, 0), (0, 99, 0), (0, 99, 0)], 10, &[2, 4, 4]),
        (&[(0, 1, 2), (0, 1, 1), (0, 1, 0)], 1, &[0, 0, 1]),
        (&[(0, 1, 0), (0, 9, 1), (0, 9, 2)], 4, &[1, 2, 1]),
        (&[(5, 1, 1), (5, 1, 0)], 1, &[0, 1]),
    ];
    for (members, free, parts) in cases {
        let mut record = Record::default();
        for (id, (got, want, weighted_use)) in (1..).zip(*members) {
            let slot = record.members_mut().slot(MemberId(id));
            slot.set_use(*got, 0, *weighted_use);
            slot.set_want(*want);
        }
        let slots = record.members().slots();
        let found: Vec<_> = slots
            .iter()
            .map(|slot| Claim::new(slots, slot.id(), slot.want(), 0).part_of_waiting(*free))
            .collect();
        assert_eq!(found, *parts, "{members:?} {free}");
    }
}

#[test]
fn a_silent_members_part_falls_to_nothing_by_the_minutes_end() {
    let record = pair(1_000, 999, 0);
    let slots = record.members().slots();
    for (rest, part) in [(1.0, 500), (0.5, 763), (0.05, 1_000), (0.0, 1_000)] {
        let window = OpenWindow::new(1_000, rest);
        let claim = Claim::new(slots, ME, 1_000, 0);
        assert_eq!(claim.fair_part(1_000, Some(window)), part, "{rest}");
    }
    let day = Claim::new(slots, ME, 1_000, 0).fair_part(1_000, None);
    assert_eq!(day, 1_000);
    let ahead = Claim::new(slots, ME, 0, 1_000);
    let window = OpenWindow::new(1_000, 0.5);
    assert_eq!(
        ahead.fair_part(800, Some(window)),
        100,
        "an eighth is drawn ahead"
    );
}

#[test]
fn an_update_records_a_members_state_and_grants_requests() {
    let mut record = pair(1_000, 900, 0);
    record.members_mut().slot(ME).set_use(10, 0, 0);
    let report = Report {
        reserved: 2,
        want: 5,
        given_back: 1,
        ..Report::default()
    };
    let granted = update(&mut record, ME, &report);
    let all = Granted {
        requests: 5,
        probe: false,
        retry_at: at(10),
        is_reserved_for_others: false,
    };
    assert_eq!(granted, all);
    let slot = record.members_mut().slot(ME).clone();
    assert_eq!((slot.reserved(), slot.want()), (7, 0));
    assert_eq!((slot.got(), slot.end()), (14, at(15)));
    assert_eq!(ask(&mut record, ME, 1), 1);
    let idle = update(&mut record, ME, &Report::default());
    assert_eq!(idle, Granted { requests: 0, ..all });
    let ahead = Report {
        prefetch: 10,
        ..Report::default()
    };
    assert_eq!(update(&mut record, ME, &ahead).requests, 10);
    let mut doubtful = record.clone();
    doubtful.ledger_mut().refusals_mut().doubt();
    assert_eq!(update(&mut doubtful, ME, &ahead).requests, 0, "a probe");
    record.expire_members(at(14), |_| true);
    assert_eq!(record.ledger().lost(), 0);
    record.members_mut().slot(ME).set_reserved(1);
    record.expire_members(at(15), |_| true);
    assert_eq!(record.ledger().lost(), 1);
}

#[test]
fn a_probe_lasts_three_seconds_and_then_as_its_member_says() {
    let mut record = Record::default();
    assert_eq!(ask(&mut record, ME, 1), 1);
    assert_eq!(record.members().probe(), Some((ME, at(13))));
    assert_eq!(record.members_mut().slot(ME).want(), 1);
    let mut tell = |member, seconds: Option<i64>| {
        let report = Report {
            probe_until: seconds.map(at),
            ..Report::default()
        };
        update(&mut record, member, &report);
        record.members().probe()
    };
    assert_eq!(tell(ME, Some(40)), Some((ME, at(40))));
    assert_eq!(tell(OTHER, Some(50)), Some((ME, at(40))));
    assert_eq!(tell(OTHER, None), Some((ME, at(40))));
    assert_eq!(tell(ME, None), None);
}

#[test]
fn reservations_of_a_dead_member_count_as_lost() {
    let mut record = pair(100, 99, 0);
    record.members_mut().slot(OTHER).set_reserved(5);
    record.members_mut().set_probe(OTHER, at(1), at(9));
    let counts = |record: &Record| (record.members().reserved(), record.ledger().lost());
    record.expire_members(at(1), |_| true);
    assert_eq!(counts(&record), (5, 0));
    record.expire_members(at(1), |id| id != OTHER);
    assert_eq!(counts(&record), (0, 5));
    assert_eq!(record.members().probe(), None);
    let slots = record.members().slots();
    assert!(slots.iter().all(|slot| slot.id() != OTHER));
}

#[test]
fn members_start_anew_when_a_window_opens() {
    let ledger = with_window(100, 99).ledger().clone();
    let mut record = Record::new(ledger, Members::default());
    record.members_mut().slot(OTHER).set_use(7, 0, 0);
    let mut local = with_window(100, 99);
    for (now, reading, expected) in [
        (1, reading(100, 98, 60), (7, 0)),
        (61, reading(100, 99, 120), (0, 7)),
    ] {
        let head = ResponseHead {
            status: 200,
            date: Some(super::rules::service(now)),
            reading,
            retry_after: None,
        };
        let outcome = RequestOutcome::answered(at(now), at(now), false, 1, head);
        record.record(ME, &outcome);
        let parts = record.members_mut().slot(OTHER).parts();
        assert_eq!(parts, expected, "{now}");
        let request = send(&mut local, now);
        answer(&mut local, request, now, reading);
    }
    let remaining = |ledger: &Ledger| ledger.windows()[0].remaining();
    assert_eq!(remaining(record.ledger()), remaining(local.ledger()));
}

#[test]
fn the_later_block_is_in_force_of_those_that_are_not_over() {
    let block = |seconds| {
        let (until, reason) = (at(seconds), BlockReason::Unknown);
        Block {
            until,
            named: ServiceTime(0),
            reason,
        }
    };
    for (known, told, expected) in [
        (None, 20, Some(20)),
        (None, 10, None),
        (Some(15), 20, Some(20)),
        (Some(20), 15, Some(20)),
    ] {
        let mut record = Record::default();
        record
            .ledger_mut()
            .refusals_mut()
            .set_block(known.map(block));
        let report = Report {
            blocked: Some(block(told)),
            ..Report::default()
        };
        update(&mut record, ME, &report);
        let found = record.ledger().refusals().last_block();
        assert_eq!(found, expected.map(block), "{known:?} {told}");
    }
}

#[test]
fn the_cap_in_flight_is_reserved_only_for_waiting_members() {
    let mut record = record(100_000_000, 0);
    for member in 1..=6 {
        let slot = record.members_mut().slot(MemberId(member));
        slot.report(0, 0, 0, at(9));
        slot.set_use(0, 6_000, 0);
    }
    record.expire_members(at(10), |_| true);
    record.members_mut().slot(ME).set_use(5_000, 0, 0);
    let report = Report {
        want: 1,
        prefetch: 20,
        ..Report::default()
    };
    assert_eq!(update(&mut record, ME, &report).requests, 21);
}

mod properties {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::rate_limit::shared::store::StoreTime;
    use crate::simulator::world::scenarios::check;

    /// Updates a record for a member with these outcomes and 64 waiting calls.
    fn updated(record: Option<&[u8]>, member: u64, outcomes: Vec<RequestOutcome>) -> Vec<u8> {
        let report = Report {
            outcomes,
            want: 64,
            prefetch: 9,
            reserved: 3,
            ..Report::default()
        };
        let (at_store, wall) = (
            StoreTime::new(7, Duration::from_secs(20)),
            ServiceTime(20 * SECOND),
        );
        let policy = Policy::default();
        let applied = Update::new(MemberId(member), &report, &policy, at(20)).apply_to_stored(
            record,
            at_store,
            wall,
            |_| true,
            || None,
        );
        applied.map_or(Vec::new(), |applied| applied.bytes)
    }

    #[test]
    fn a_damaged_record_is_refused_or_used_and_harms_nobody() {
        let head = (
            prop_oneof![Just(200_u16), Just(429), Just(503)],
            0..200_u64,
            any::<bool>(),
        );
        // An encoded number takes one to ten bytes; this is the largest one.
        let huge = [&[0xff; 9][..], &[1]].concat();
        let bytes = prop_oneof![
            vec(any::<u8>(), 0..3),
            Just(huge),
            Just(vec![0xff, 0xff, 3])
        ];
        let damage = (any::<Index>(), bytes);
        check(
            (vec(head, 0..5), vec(damage, 0..4)),
            (8_000, 9),
            |(heads, damage)| {
                let outcome = |(status, remaining, is_lost): (u16, u64, bool)| {
                    let reset = ServiceTime(60 * SECOND);
                    let reading = Some(Reading {
                        limit: 200,
                        remaining,
                        reset,
                    });
                    let date = Some(ServiceTime(11 * SECOND));
                    let head = ResponseHead {
                        status,
                        date,
                        reading,
                        retry_after: None,
                    };
                    if is_lost {
                        RequestOutcome::lost(at(10), at(11), false)
                    } else {
                        RequestOutcome::answered(at(10), at(11), false, 1, head)
                    }
                };
                let mut record = updated(None, 1, heads.into_iter().map(outcome).collect());
                record = updated(Some(&record), 2, vec![]);
                for (place, bytes) in damage {
                    let place = place.index(record.len());
                    record.splice(place..=place, bytes);
                }
                for member in 1..=3 {
                    let outcomes = vec![outcome((200, 5, false)), outcome((200, 4, true))];
                    record = updated(Some(&record), member, outcomes);
                }
                Ok(())
            },
        );
    }
}
