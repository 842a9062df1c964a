//! A process that cannot reach its store. It goes on with the last ledger that it saw, and assumes that
//! others use the key.

use crate::rate_limit::quota::instant::{LedgerTime, SECOND};
use crate::rate_limit::quota::{Answer, Ledger, Report};

/// The time limit of an exchange with a store.
pub(super) const STORE_TIMEOUT: i64 = 3 * SECOND;
/// How often the store is tried again.
const RETRY: i64 = SECOND;

/// What a process knows while its store is away.
#[derive(Debug)]
pub(super) struct Alone {
    ledger: Ledger,
    /// The store's time at an instant of the limiter's clock.
    store_now: LedgerTime,
    now: LedgerTime,
    /// The number of the first outcome that this ledger does not know.
    next_outcome: u64,
    retry_at: LedgerTime,
}

impl Alone {
    /// Begins with what a process saw last.
    pub(super) fn new(
        (mut ledger, store_now): (Ledger, LedgerTime),
        now: LedgerTime,
        next_outcome: u64,
    ) -> Self {
        ledger.assume_others(store_now);
        Self {
            ledger,
            store_now,
            now,
            next_outcome,
            retry_at: now.plus(RETRY),
        }
    }

    pub(super) fn exchange(&mut self, report: &Report, now: LedgerTime) -> Answer {
        let outcomes = report.outcomes.len() as u64;
        self.next_outcome = report.first_outcome.saturating_add(outcomes);
        let store_now = self.store_now(now);
        self.ledger.exchange(report, store_now)
    }

    pub(super) fn next_outcome(&self) -> u64 {
        self.next_outcome
    }

    pub(super) fn last_seen(&self, now: LedgerTime) -> (Ledger, LedgerTime) {
        (self.ledger.clone(), self.store_now(now))
    }

    fn store_now(&self, now: LedgerTime) -> LedgerTime {
        self.store_now.plus(now.since(self.now))
    }

    /// Returns whether to try the store again now.
    pub(super) fn must_retry(&mut self, now: LedgerTime) -> bool {
        let must = self.retry_at <= now;
        if must {
            self.retry_at = now.plus(STORE_TIMEOUT + RETRY);
        }
        must
    }

    /// Records that the store is still away.
    pub(super) fn failed(&mut self, now: LedgerTime) {
        self.retry_at = now.plus(RETRY);
    }
}
