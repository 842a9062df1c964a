//! Tests of updates of a stored record.

use std::time::Duration;

use super::rules::with_window;
use crate::rate_limit::quota::clock::{LocalTime, SECOND, ServiceTime};
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::shared::record::Record;
use crate::rate_limit::shared::slot::{MEMBER_LEASE, MemberId};
use crate::rate_limit::shared::store::StoreTime;
use crate::rate_limit::shared::update::{Applied, Report, Update};

const HOUR: i64 = 3_600 * SECOND;
const NOW: LocalTime = LocalTime(11 * HOUR);
const WALL: ServiceTime = ServiceTime(11 * HOUR);
const ME: MemberId = MemberId(2);

fn at() -> StoreTime {
    StoreTime::new(1, Duration::from_secs(11 * 3_600))
}

/// A record of another member, with five reservations.
fn record() -> Vec<u8> {
    let mut record = Record::default();
    let slot = record.members_mut().slot(MemberId(1));
    slot.set_reserved(5);
    record.encode(at(), WALL).unwrap()
}

#[test]
fn a_dead_member_holds_no_reservations() {
    for (is_dead, reserved, lost) in [(false, 5, 0), (true, 0, 5)] {
        let (report, policy) = (Report::default(), Policy::default());
        let applied = Update::new(ME, &report, &policy, NOW)
            .apply_to_stored(
                Some(&record()),
                at(),
                WALL,
                |other| other != ME && !is_dead,
                || None,
            )
            .unwrap();
        let (ledger, members) = applied.record.into_parts();
        assert_eq!((members.reserved(), ledger.lost()), (reserved, lost));
        assert_eq!(members.alive(NOW), 2 - usize::from(is_dead));
    }
}

/// A record with this number of updates at this second, and what its members have reserved.
fn stored(updates: u32, seconds: i64, reserved: &[(u64, u64)]) -> Record {
    let ledger = with_window(100, 99).ledger().clone();
    let mut record = Record::new(ledger, Default::default());
    for (member, reserved) in reserved {
        let end = LocalTime(NOW.0 + seconds * SECOND).plus(MEMBER_LEASE);
        let slot = record.members_mut().slot(MemberId(*member));
        slot.report(*reserved, 0, 0, end);
    }
    for _ in 0..updates {
        record.members_mut().count_update();
    }
    record
}

/// Applies a report of a member that wants a request and has seen this number of updates.
fn ask(me: u64, stored: &Record, seen: u64, copy: &Record, seconds: i64) -> Applied {
    let report = Report {
        seen_updates: seen,
        want: 1,
        ..Report::default()
    };
    let bytes = stored.encode(at(), WALL).unwrap();
    let now = LocalTime(NOW.0 + seconds * SECOND);
    Update::new(MemberId(me), &report, &Policy::default(), now)
        .apply_to_stored(Some(&bytes), at(), WALL, |_| true, || Some(copy.clone()))
        .unwrap()
}

fn reserved(record: &Record) -> Vec<(u64, u64)> {
    let slots = record.members().slots().iter();
    slots.map(|slot| (slot.id().0, slot.reserved())).collect()
}

#[test]
fn a_record_older_than_a_members_copy_is_merged_with_it() {
    let old = stored(7, -4, &[(1, 9), (3, 4)]);
    let copy = stored(8, -1, &[(1, 5), (2, 0)]);
    for (seen, found, updates) in [
        (7, vec![(1, 9), (3, 4), (2, 1)], 8),
        (8, vec![(1, 5), (3, 4), (2, 0)], 9),
    ] {
        let applied = ask(2, &old, seen, &copy, 0);
        assert_eq!(reserved(&applied.record), found, "{seen}");
        assert_eq!(applied.record.members().updates(), updates, "{seen}");
    }
    // A later report to the older record counts.
    let newer = stored(7, 0, &[(1, 9)]);
    let applied = ask(2, &newer, 8, &copy, 0);
    assert_eq!(reserved(&applied.record), [(1, 9), (2, 0)]);
}

#[test]
fn a_restored_record_grants_nothing_until_members_report() {
    let old = stored(7, -4, &[]);
    let restored = ask(2, &old, 8, &stored(8, -1, &[(1, 5), (2, 0)]), 0);
    assert_eq!(restored.granted.requests, 0);
    assert_eq!(restored.granted.retry_at, NOW.moved(50_000));
    for (seconds, granted) in [(4, 0), (5, 1)] {
        let later = ask(2, &restored.record, 9, &old, seconds);
        assert_eq!(later.granted.requests, granted, "{seconds} s");
    }
    let reported = ask(1, &restored.record, 9, &old, 1).record;
    assert_eq!(ask(2, &reported, 10, &old, 1).granted.requests, 1);
    let alone = ask(2, &old, 8, &stored(8, -1, &[(2, 0)]), 0);
    assert_eq!(alone.granted.requests, 1, "no other member");
}

#[test]
fn a_record_moved_back_is_older_than_the_restored_one() {
    let copy = stored(7, -1, &[(1, 0), (2, 0)]);
    let (report, policy) = (Report::default(), Policy::default());
    let restored = Update::new(ME, &report, &policy, NOW)
        .apply_to_stored(None, at(), WALL, |_| true, || Some(copy.clone()))
        .unwrap()
        .record;
    // Another member updates the old record before this one sees it.
    let mut moved_back = copy;
    for _ in 0..3 {
        moved_back = ask(1, &moved_back, 7, &moved_back, 0).record;
    }
    let seen = restored.members().updates();
    let applied = ask(2, &moved_back, seen, &restored, 1);
    assert_eq!(applied.granted.requests, 0, "the other must report first");
}

#[test]
fn a_member_that_leaves_removes_itself_alone() {
    let report = Report {
        leaves: true,
        ..Report::default()
    };
    let policy = Policy::default();
    let applied = Update::new(ME, &report, &policy, NOW)
        .apply_to_stored(Some(&record()), at(), WALL, |_| true, || None)
        .unwrap();
    let members = |record: &Record| {
        let slots = record.members().slots().iter();
        slots.map(|slot| slot.id().0).collect::<Vec<_>>()
    };
    let written = Record::decode(&applied.bytes, at(), WALL).unwrap();
    assert_eq!(members(&written), [1]);
    assert_eq!(members(&applied.record), [1, 2]);
}
