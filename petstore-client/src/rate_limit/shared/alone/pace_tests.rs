//! Tests of the pace of a member that cannot see the others.

use super::super::draws::Draws;
use super::*;

const LIMIT: u64 = 1_000;
const LATENCY: Duration = Duration::from_millis(100);

fn at(milliseconds: i64) -> LocalTime {
    LocalTime(milliseconds * 1_000)
}

/// The observation of a response that arrives at `milliseconds`, one latency after its request, in
/// a minute that began at 0.
fn seen(milliseconds: i64, remaining: u64) -> Observation {
    Observation {
        sent: at(milliseconds - 100),
        at: at(milliseconds),
        quota: Quota::Minute,
        limit: LIMIT,
        remaining,
        opened_at: at(100),
        reset_at: at(60_000),
        own: 0,
        others: 0,
        in_flight: 1,
        latency: LATENCY,
    }
}

/// The same observation in the next minute, with requests of other members.
fn seen_later(milliseconds: i64, remaining: u64, others: u64) -> Observation {
    Observation {
        opened_at: at(60_100),
        reset_at: at(120_000),
        others,
        ..seen(milliseconds, remaining)
    }
}

/// A member that has counted this many members at its start, after 3.2 s.
fn counted(members: u64) -> Pace {
    let mut pace = Pace::starting();
    pace.observe(&seen(100, 990), 0.0);
    let others = members - 1;
    let second = Observation {
        others,
        ..seen(3_300, 990 - members)
    };
    pace.observe(&second, 0.0);
    pace
}

#[test]
fn a_member_starts_with_one_request_and_waits_three_seconds() {
    let mut pace = Pace::starting();
    assert_eq!(pace.advice(at(0)), Advice::InFlight(1));
    pace.observe(&seen(100, 990), 0.0);
    assert_eq!(pace.advice(at(200)), Advice::Wait(at(3_100)));
    assert_eq!(pace.advice(at(3_100)), Advice::InFlight(1));
    // The second request is late at random, by three latencies at most.
    let mut late = Pace::starting();
    late.observe(&seen(100, 990), 0.999);
    assert_eq!(late.advice(at(200)), Advice::Wait(at(3_400)));
}

#[test]
fn the_pace_after_a_start_is_a_members_part() {
    // 34 of about 950 requests are left to others. A drain of 14.2 s has 142 latencies.
    for (members, in_flight) in [(2, 3), (4, 1)] {
        let pace = counted(members);
        assert!(pace.is_needed());
        assert_eq!(
            pace.advice(at(3_300)),
            Advice::InFlight(in_flight),
            "{members}"
        );
    }
    // With 64 members, each sends less than one request in a latency.
    let mut pace = counted(64);
    pace.observe(
        &Observation {
            others: 100,
            ..seen(3_400, 900)
        },
        0.5,
    );
    assert!(matches!(pace.advice(at(3_400)), Advice::Wait(until) if until > at(3_600)));
}

#[test]
fn a_member_that_sees_nobody_becomes_the_sole_user() {
    let mut pace = counted(1);
    for measurement in 0_u8..8 {
        assert!(pace.is_needed(), "{measurement}");
        let later = 3_400 + 100 * i64::from(measurement);
        pace.observe(&seen(later, 980 - u64::from(measurement)), 0.0);
    }
    assert!(!pace.is_needed());
    // Some of its first window is left to members that start later, until shortly before its end.
    assert_eq!(pace.reserves_until(at(10_000)), Some(at(55_000)));
    assert_eq!((pace.kept(at(54_999)), pace.kept(at(55_000))), (32, 0));
    pace.observe(
        &Observation {
            others: 5,
            ..seen(5_000, 900)
        },
        0.0,
    );
    assert!(pace.is_needed(), "others have been seen");
}

#[test]
fn a_pace_follows_how_fast_the_rest_falls() {
    let rate_after = |remaining| {
        let mut pace = counted(2);
        let next = Observation {
            others: 100,
            in_flight: 10,
            ..seen(3_500, remaining)
        };
        pace.observe(&next, 0.0);
        pace.rate
    };
    let before = counted(2).rate;
    // All should use 13 requests in two latencies.
    assert!(rate_after(987) > before && rate_after(987) < 1.3 * before);
    assert!(rate_after(900) < 0.5 * before && rate_after(900) > 0.2 * before);
    assert!(rate_after(30) == 0.0, "the last requests are given up");
    let mut pace = counted(2);
    let overtaken = Observation {
        sent: at(3_200),
        ..seen(3_500, 500)
    };
    let rate = pace.rate;
    pace.observe(&overtaken, 0.0);
    assert!(
        pace.rate == rate,
        "its request was sent before the measurement"
    );
}

#[test]
fn after_a_reset_members_send_one_request_for_a_second() {
    let mut pace = counted(4);
    pace.observe(
        &Observation {
            own: 300,
            others: 690,
            ..seen(20_000, 5)
        },
        0.0,
    );
    assert_eq!(pace.advice(at(30_000)), Advice::WaitForReset(at(60_000)));
    assert_eq!(pace.advice(at(60_000)), Advice::InFlight(1));
    pace.observe(&seen_later(60_100, 997, 2), 0.0);
    assert_eq!(pace.advice(at(60_200)), Advice::Wait(at(61_000)));
    pace.observe(&seen_later(61_100, 995, 3), 0.0);
    let all = (995.0 - 3.0) / (58_900.0 / 4.0 / 100.0);
    assert!((pace.rate - all / 4.0).abs() < 0.1, "{}", pace.rate);
    // A member with a small part of a small quota sends late. By then, the requests of others have
    // shown what is left.
    let mut small = counted(4);
    let few = Observation {
        limit: 60,
        own: 0,
        others: 59,
        ..seen(20_000, 0)
    };
    small.observe(&few, 0.5);
    assert!(matches!(small.advice(at(60_000)), Advice::Wait(_)));
}

#[test]
fn a_member_that_loses_the_store_goes_on_slowly() {
    let lost = |members, remaining| {
        let last = Some(seen(3_000, remaining));
        Pace::after_loss(members, last, at(3_000), 0.0)
    };
    assert_eq!(lost(2, 640).advice(at(3_010)), Advice::InFlight(8));
    assert_eq!(lost(4, 256).advice(at(3_010)), Advice::InFlight(2));
    assert_eq!(
        lost(64, 511).advice(at(3_010)),
        Advice::WaitForReset(at(60_000))
    );
    assert_eq!(lost(1, 900).advice(at(3_010)), Advice::InFlight(1));
    assert!(lost(2, 0).is_needed());
}

#[test]
fn a_window_that_slides_is_no_reset() {
    let mut pace = counted(2);
    let slid = Observation {
        opened_at: at(6_000),
        reset_at: at(63_000),
        others: 10,
        ..seen(6_000, 800)
    };
    pace.observe(&slid, 0.0);
    assert!(matches!(pace.advice(at(6_010)), Advice::InFlight(_)));
}

#[test]
fn a_clock_that_is_ahead_moves_all_instants() {
    let mut pace = Pace::starting();
    pace.observe(&seen(100, 990), 0.0);
    pace.shift(5_000_000);
    assert_eq!(pace.advice(at(5_200)), Advice::Wait(at(8_100)));
    assert_eq!(pace.reserves_until(at(59_999)), Some(at(60_000)));
}

#[test]
fn extremes_overflow_nothing() {
    for (limit, remaining) in [(0, 0), (u64::MAX, 0), (u64::MAX, u64::MAX)] {
        let extreme = |milliseconds| Observation {
            limit,
            remaining,
            own: u64::MAX,
            others: u64::MAX,
            in_flight: u64::MAX,
            latency: Duration::MAX,
            reset_at: LocalTime(i64::MAX),
            ..seen(milliseconds, 0)
        };
        let mut paces = [
            Pace::starting(),
            Pace::after_loss(u64::MAX, Some(extreme(0)), at(0), 1.0),
        ];
        for pace in &mut paces {
            for milliseconds in [100, 5_000, i64::MAX / 1_000] {
                for draw in [0.0, 1.0] {
                    pace.observe(&extreme(milliseconds), draw);
                }
                let _ = (pace.advice(at(milliseconds)), pace.kept(at(0)));
            }
        }
    }
}

#[test]
fn draws_are_spread_between_zero_and_one() {
    let mut draws = Draws::seeded(7);
    let drawn: Vec<_> = (0..1_000).map(|_| draws.draw()).collect();
    assert!(drawn.iter().all(|draw| (0.0..1.0).contains(draw)));
    let mean = drawn.iter().sum::<f64>() / 1_000.0;
    assert!((0.45..0.55).contains(&mean), "{mean}");
}
