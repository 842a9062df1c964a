//! What members are granted that share a key.

use std::time::Duration;

use super::rules::at;
use crate::rate_limit::quota::clock::{LocalTime, SECOND, ServiceTime};
use crate::rate_limit::quota::decision::Policy;
use crate::rate_limit::quota::ledger::{Ledger, Probe};
use crate::rate_limit::quota::reading::{Block, Reading};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::shared::division::{Granted, Report};
use crate::rate_limit::shared::slot::{MemberId, Slot};
use crate::rate_limit::view::{BlockReason, Quota};

const ME: MemberId = MemberId(9);

/// A ledger of which members have used so much, as it was known ten seconds ago, where other
/// clients use the key.
fn ledger(limit: u64, used: u64) -> Ledger {
    let mut ledger = Ledger::new(at(0), ServiceTime(0));
    let reading = Reading {
        limit,
        remaining: limit - used,
        reset: ServiceTime(60 * SECOND),
    };
    let window = Window::open(reading, (used, 1), None, (at(0), ServiceTime(0)));
    ledger.windows.push(window);
    (ledger.described, ledger.seen_at) = (true, Some(at(0)));
    (ledger.own_share, ledger.other_clients_until) = (Some(0.5), Some(ServiceTime(100 * SECOND)));
    ledger
}

/// Asks for so many requests; returns how many it gets.
fn ask(ledger: &mut Ledger, member: MemberId, want: u64) -> u64 {
    let report = Report {
        want,
        ..Report::default()
    };
    ledger
        .update(member, &report, &Policy::default(), at(10))
        .requests
}

#[test]
fn members_that_fell_silent_while_they_waited_hold_nobody_up_beside_other_clients() {
    // The reading is old: one request may go.
    let mut ledger = ledger(1_000, 900);
    for member in 1..=5 {
        let slot = ledger.slot(MemberId(member));
        (slot.want, slot.until) = (64, at(9));
    }
    ledger.expire_members(at(10), |_| true);
    assert_eq!(ask(&mut ledger, ME, 64), 1);
}

#[test]
fn nothing_is_kept_for_others_while_one_request_asks_for_all() {
    let mut ledger = Ledger::new(at(0), ServiceTime(0));
    let report = Report {
        want: 64,
        ..Report::default()
    };
    let granted = ledger.update(ME, &report, &Policy::default(), at(10));
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
    let mut ledger = pair(1_000, 100, 0);
    (ledger.slot(MemberId(1)).reserved, ledger.unforeseen) = (0, Some(at(10)));
    assert_eq!(ask(&mut ledger, ME, 64), 1);
}

#[test]
fn beside_other_clients_much_may_be_in_flight_while_much_is_left() {
    for (limit, used, expected) in [(100_000, 1, 64), (100_000, 99_000, 1), (1_000, 1, 1)] {
        assert_eq!(
            ask(&mut ledger(limit, used), ME, 64),
            expected,
            "{used} of {limit} used"
        );
    }
}

/// A ledger of two members with so much latency, in which the other one has a request in flight.
fn pair(limit: u64, remaining: u64, latency: u64) -> Ledger {
    let mut ledger = ledger(limit, limit - remaining);
    (ledger.own_share, ledger.other_clients_until) = (None, None);
    ledger.latency = Duration::from_millis(latency);
    ledger.slot(MemberId(1)).reserved = 1;
    ledger.slot(ME);
    ledger
}

/// Returns how many milliseconds later the member asks again that gets nothing.
fn again(ledger: &mut Ledger, policy: &Policy, spread: f64) -> i64 {
    let report = Report {
        want: 2,
        jitter: spread,
        ..Report::default()
    };
    let granted = ledger.update(ME, &report, policy, at(10));
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
fn a_member_asks_again_when_a_response_may_have_come_or_a_block_may_be_over() {
    let one = Policy {
        max_in_flight: Some(1),
        ..Policy::default()
    };
    for (latency, spread, expected) in [
        (0, 0.0, 100),
        (0, 1.0, 400),
        (500, 0.0, 600),
        (9_000, 0.0, 1_600),
    ] {
        let found = again(&mut pair(1_000, 900, latency), &one, spread);
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
        let mut ledger = pair(1_000, 900, latency);
        ledger.described = false;
        let (granted, until) = (LocalTime(at(10).0 - since * 1_000), at(99));
        ledger.probe = Some(Probe {
            member: MemberId(1),
            granted,
            until,
        });
        let found = again(&mut ledger, &Policy::default(), 0.0);
        assert_eq!(found, expected, "a probe, {latency} {since}");
    }
    for (want, weighted_use, spread, expected) in [
        (1, 0, 0.0, 1_600),
        (0, 0, 0.0, 1_000),
        (1, 2, 0.0, 1_000),
        (1, 2, 1.0, 1_300),
    ] {
        let mut ledger = pair(1_000, 1, 0);
        (
            ledger.slot(MemberId(1)).want,
            ledger.slot(MemberId(1)).weighted_use,
        ) = (want, weighted_use);
        ledger.slot(ME).weighted_use = 1;
        let found = again(&mut ledger, &Policy::default(), spread);
        assert_eq!(found, expected, "none left, {want} {weighted_use}");
    }
    for (members, seconds, expected) in [
        (1, 1, 1_000),
        (2, 1, 1_300),
        (2, 9, 1_600),
        (2, 160, 10_000),
        (2, 9_999, 60_000),
    ] {
        let mut ledger = pair(1_000, 900, 0);
        ledger.slots.truncate(members - 1);
        let (until, reason) = (at(10 + seconds), BlockReason::Unknown);
        ledger.blocked = Some(Block {
            until,
            named: ServiceTime(0),
            reason,
        });
        let found = again(&mut ledger, &Policy::default(), 1.0);
        assert_eq!(found, expected, "blocked, {members} {seconds}");
    }
}

#[test]
fn members_are_filled_to_one_level_and_what_is_left_over_goes_by_turn() {
    // What each got and asks for, and its weighted_use; what is free; what each gets.
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
        let mut ledger = Ledger::new(at(0), ServiceTime(0));
        for (id, (got, want, weighted_use)) in (1..).zip(*members) {
            let slot = ledger.slot(MemberId(id));
            (slot.got, slot.want, slot.weighted_use) = (*got, *want, *weighted_use);
        }
        let level = |slot: &Slot| ledger.level(slot.id, *free, slot.want, |slot| slot.want);
        let found: Vec<_> = ledger.slots.iter().map(level).collect();
        assert_eq!(found, *parts, "{members:?} {free}");
    }
}

#[test]
fn what_is_kept_for_a_member_that_does_not_ask_falls_to_nothing_towards_the_minutes_end() {
    let mut day = pair(1_000, 999, 0);
    day.windows[0].quota = Quota::Day;
    let minute = pair(1_000, 999, 0);
    for (ledger, now, part) in [
        (&minute, 0, 500),
        (&minute, 30, 763),
        (&minute, 57, 1_000),
        (&minute, 61, 1_000),
    ]
    .into_iter()
    .chain([(&day, 0, 1_000)])
    {
        let report = Report {
            want: 1_000,
            ..Report::default()
        };
        assert_eq!(
            ledger.fair_share(ME, &report, 1_000, at(now)),
            part,
            "{now}"
        );
    }
    let report = Report {
        prefetch: 1_000,
        ..Report::default()
    };
    assert_eq!(
        minute.fair_share(ME, &report, 800, at(30)),
        100,
        "an eighth is drawn ahead"
    );
}

#[test]
fn an_update_records_what_a_member_has_and_grants_what_it_asks_for() {
    let mut ledger = pair(1_000, 900, 0);
    ledger.slot(ME).got = 10;
    let report = Report {
        reserved: 2,
        want: 5,
        given_back: 1,
        ..Report::default()
    };
    let granted = ledger.update(ME, &report, &Policy::default(), at(10));
    let all = Granted {
        requests: 5,
        probe: false,
        retry_at: at(10),
        is_reserved_for_others: false,
    };
    assert_eq!(granted, all);
    let slot = ledger.slot(ME).clone();
    assert_eq!(
        (slot.reserved, slot.want, slot.got, slot.until),
        (7, 0, 14, at(15))
    );
    assert_eq!(ask(&mut ledger, ME, 1), 1);
    let idle = ledger.update(ME, &Report::default(), &Policy::default(), at(10));
    assert_eq!(idle, Granted { requests: 0, ..all });
    let ahead = Report {
        prefetch: 10,
        ..Report::default()
    };
    assert_eq!(
        ledger
            .update(ME, &ahead, &Policy::default(), at(10))
            .requests,
        10
    );
    ledger.described = false;
    assert_eq!(
        ledger
            .update(ME, &ahead, &Policy::default(), at(10))
            .requests,
        0,
        "a probe"
    );
    ledger.described = true;
    ledger.expire_members(at(14), |_| true);
    assert_eq!(ledger.lost.count(), 0);
    ledger.slot(ME).reserved = 1;
    ledger.expire_members(at(15), |_| true);
    assert_eq!(ledger.lost.count(), 1);
}

#[test]
fn a_probe_is_granted_for_three_seconds_and_then_lasts_as_its_member_says() {
    let mut ledger = Ledger::new(at(0), ServiceTime(0));
    assert_eq!(ask(&mut ledger, ME, 1), 1);
    let probe = |ledger: &Ledger| ledger.probe.map(|probe| (probe.member, probe.until));
    assert_eq!(
        (probe(&ledger), ledger.slot(ME).want),
        (Some((ME, at(13))), 1)
    );
    let mut tell = |member, seconds: Option<i64>| {
        let report = Report {
            probe_until: seconds.map(at),
            ..Report::default()
        };
        ledger.update(member, &report, &Policy::default(), at(10));
        probe(&ledger)
    };
    assert_eq!(tell(ME, Some(40)), Some((ME, at(40))));
    assert_eq!(tell(MemberId(1), Some(50)), Some((ME, at(40))));
    assert_eq!(tell(MemberId(1), None), Some((ME, at(40))));
    assert_eq!(tell(ME, None), None);
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
        let mut ledger = Ledger::new(at(0), ServiceTime(0));
        ledger.blocked = known.map(block);
        let report = Report {
            blocked: Some(block(told)),
            ..Report::default()
        };
        ledger.update(ME, &report, &Policy::default(), at(10));
        assert_eq!(ledger.blocked, expected.map(block), "{known:?} {told}");
    }
}

#[test]
fn the_cap_for_requests_in_flight_is_not_reserved_for_members_that_do_not_wait() {
    let mut ledger = ledger(100_000_000, 0);
    (ledger.own_share, ledger.other_clients_until) = (None, None);
    for member in 1..=6 {
        let slot = ledger.slot(MemberId(member));
        (slot.previous, slot.until) = (6_000, at(9));
    }
    ledger.expire_members(at(10), |_| true);
    ledger.slot(ME).got = 5_000;
    let report = Report {
        want: 1,
        prefetch: 20,
        ..Report::default()
    };
    assert_eq!(
        ledger
            .update(ME, &report, &Policy::default(), at(10))
            .requests,
        21
    );
}

#[cfg(test)]
mod properties {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::rate_limit::quota::reading::{Outcome, ResponseHead};
    use crate::rate_limit::shared::store::{StoreTime, update_record};
    use crate::simulator::scenarios::check;

    /// Updates a record as a member that got these answers and has 64 calls waiting.
    fn updated(record: Option<&[u8]>, member: u64, outcomes: Vec<Outcome>) -> Vec<u8> {
        let report = Report {
            outcomes,
            want: 64,
            prefetch: 9,
            reserved: 3,
            ..Report::default()
        };
        let now = (
            StoreTime::new(7, Duration::from_secs(20)),
            at(20),
            ServiceTime(20 * SECOND),
        );
        let policy = Policy::default();
        let member = (MemberId(member), &report);
        let result = update_record(record, now, member, &policy, |_| true, || None);
        result.map_or(Vec::new(), |(record, ..)| record)
    }

    #[test]
    fn a_damaged_record_is_refused_or_used_and_harms_nobody() {
        let head = (
            prop_oneof![Just(200_u16), Just(429), Just(503)],
            0..200_u64,
            any::<bool>(),
        );
        // A number takes one byte and up to ten: the largest there are.
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
                    let head = Some(head).filter(|_| !is_lost);
                    Outcome {
                        sent: at(10),
                        ended: at(11),
                        probe: false,
                        requests: 1,
                        head,
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
