//! A store in the memory of a process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rate_limit::limiter_clock::LimiterClock;
use crate::rate_limit::quota::instant::LedgerTime;
use crate::rate_limit::quota::{Answer, Ledger, Report};

/// The ledger of a lone process.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    ledger: Mutex<Ledger>,
    clock: Arc<LimiterClock>,
}

impl MemoryStore {
    pub(crate) fn new(clock: Arc<LimiterClock>) -> Self {
        Self {
            ledger: Mutex::default(),
            clock,
        }
    }

    pub(crate) fn exchange(&self, report: &Report, now: LedgerTime) -> Answer {
        let mut ledger = self.ledger();
        // Its holders are clients of this process, which do not die.
        ledger.keep_alive(now);
        ledger.exchange(report, now)
    }

    pub(crate) fn last_seen(&self) -> (Ledger, LedgerTime) {
        (self.ledger().clone(), self.now())
    }

    pub(crate) fn now(&self) -> LedgerTime {
        self.clock.now()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
