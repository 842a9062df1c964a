//! The format of stored reports. All replicas of a ledger must be equal, also those of other versions.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::cases::cases;
use crate::rate_limit::quota::instant::{LedgerTime, SECOND, ServiceTime};
use crate::rate_limit::quota::reading::{Outcome, Reading, ResponseHead};
use crate::rate_limit::quota::terms::Terms;
use crate::rate_limit::quota::{Ledger, Report};
use crate::rate_limit::view::Plan;

const START: i64 = 1_800_000_000 * SECOND;

/// A ledger in a store is whatever others have written.
#[test]
fn no_stored_ledger_makes_a_process_panic_or_wait_for_years() {
    let reports = reports();
    let mut ledger = Ledger::default();
    for (report, at) in &reports {
        ledger.exchange(report, *at);
    }
    let stored = postcard::to_allocvec(&ledger).unwrap();
    let used = std::cell::Cell::new(0);
    let case = (vec((any::<Index>(), any::<u8>()), 1..6), 0..reports.len());
    proptest!(cases(5_000), |((changes, first) in case)| {
        let mut bytes = stored.clone();
        for (place, byte) in changes {
            *place.get_mut(&mut bytes) = byte;
        }
        let read = postcard::from_bytes::<Ledger>(&bytes);
        let Some(mut ledger) = read.ok().filter(Ledger::is_plausible) else {
            return Ok(());
        };
        used.set(used.get() + 1);
        for (report, at) in &reports[first..] {
            let answer = ledger.exchange(report, *at);
            prop_assert!(answer.granted <= report.waiting);
            prop_assert!(answer.pause.length() <= 25 * 3_600 * SECOND + 61 * SECOND);
        }
        drop(ledger.snapshot(&reports[0].0, LedgerTime(0)));
    });
    assert!(used.get() > 500, "{used:?}");
}

/// Returns reports of three holders in two minutes, and when they come.
fn reports() -> Vec<(Report, LedgerTime)> {
    let mut reports = Vec::new();
    let mut remaining = 60;
    for step in 0..60_i64 {
        let at = step * 2 * SECOND;
        remaining = if step == 30 { 59 } else { remaining - 1 };
        let is_refused = step == 20;
        let head = ResponseHead {
            status: if is_refused { 429 } else { 200 },
            date: Some(ServiceTime(START + at)),
            wall: ServiceTime(START + at + 3 * SECOND),
            reading: Some(Reading {
                limit: 60,
                remaining: if is_refused { 5 } else { remaining },
                reset: ServiceTime(START + (at / (60 * SECOND) + 1) * 60 * SECOND),
            }),
            retry_after: is_refused.then_some(3 * SECOND),
        };
        let outcome = Outcome {
            sent_ago: SECOND / 10,
            ended_ago: SECOND / 1_000,
            is_probe: step == 0,
            head: (step % 7 != 6).then_some(head),
        };
        let mut terms = Terms::default();
        terms.set_share(if step % 3 == 1 { 0.5 } else { 1.0 });
        terms.set_plan((step % 3 == 2).then_some(Plan::FREE));
        let report = Report {
            holder: u64::try_from(step % 3).unwrap(),
            first_outcome: u64::try_from(step / 3).unwrap(),
            outcomes: vec![outcome],
            in_flight: 1,
            has_probe: false,
            waiting: 3,
            forces: step == 21,
            was_banned: step == 22,
            is_alone: false,
            leaves: step == 59,
            forgets: false,
            terms,
        };
        reports.push((report, LedgerTime(at)));
    }
    reports
}

/// If this fails, raise `FORMAT` in `store/mod.rs`, and write the new values here.
#[test]
fn stored_reports_lead_to_the_same_ledger_as_before() {
    const REPORTS: u32 = 2_427_907_615;
    const LEDGER: u32 = 601_566_345;

    let reports = reports();
    let bytes: Vec<_> = reports
        .iter()
        .map(|(report, _)| postcard::to_allocvec(report).unwrap())
        .collect();
    let mut ledger = Ledger::default();
    for (bytes, (_, at)) in bytes.iter().zip(&reports) {
        let report: Report = postcard::from_bytes(bytes).unwrap();
        ledger.exchange(&report, *at);
    }
    assert!(ledger.is_plausible());
    let stored = postcard::to_allocvec(&ledger).unwrap();
    let hashes = [&bytes.concat(), &stored].map(|bytes| crc32fast::hash(bytes));
    assert_eq!(
        hashes,
        [REPORTS, LEDGER],
        "the format or a rule has changed"
    );
    // A replica that continues with a stored ledger is equal to one that has seen all reports.
    let mut replica: Ledger = postcard::from_bytes(&stored).unwrap();
    for (report, at) in &reports {
        let later = LedgerTime(at.0 + 200 * SECOND);
        assert_eq!(
            replica.exchange(report, later),
            ledger.exchange(report, later)
        );
    }
}
