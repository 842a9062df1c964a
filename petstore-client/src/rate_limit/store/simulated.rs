//! A store for tests: it is a round trip away, and may be unreachable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use super::StoreError;
use crate::rate_limit::limiter_clock::LimiterClock;
use crate::rate_limit::quota::instant::LedgerTime;
use crate::rate_limit::quota::{Answer, Ledger, Report};

/// The ledger that several processes of a test share.
#[derive(Clone)]
pub(crate) struct SharedLedger {
    ledger: Arc<Mutex<Ledger>>,
    clock: Arc<LimiterClock>,
    is_down: Arc<AtomicBool>,
    is_deleted: Arc<AtomicBool>,
}

/// The store as one process has it.
pub(crate) struct SimulatedStore {
    shared: SharedLedger,
    round_trip: Duration,
    /// Whether the process is stopped.
    is_stopped: Arc<AtomicBool>,
    last: Mutex<Ledger>,
}

impl SharedLedger {
    pub(crate) fn new(clock: Arc<LimiterClock>) -> Self {
        Self {
            ledger: Arc::default(),
            clock,
            is_down: Arc::default(),
            is_deleted: Arc::default(),
        }
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    /// Deletes the ledger, as if its file was.
    pub(crate) fn delete(&self) {
        self.is_deleted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn store(
        &self,
        round_trip: Duration,
        is_stopped: Arc<AtomicBool>,
    ) -> SimulatedStore {
        SimulatedStore {
            shared: self.clone(),
            round_trip,
            is_stopped,
            last: Mutex::default(),
        }
    }
}

impl SimulatedStore {
    pub(super) async fn exchange(&self, report: &Report) -> Result<Answer, StoreError> {
        self.travel().await;
        while self.is_stopped.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(50)).await;
        }
        let shared = &self.shared;
        if shared.is_down.load(Ordering::Relaxed) {
            return Err(StoreError::new("it is down"));
        }
        let (answer, seen) = {
            let mut ledger = shared.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            if shared.is_deleted.swap(false, Ordering::Relaxed) {
                *ledger = self.last_ledger().doubted();
            }
            let answer = ledger.exchange(report, shared.clock.now());
            (answer, ledger.clone())
        };
        self.travel().await;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        Ok(answer)
    }

    pub(super) fn last_seen(&self) -> (Ledger, LedgerTime) {
        (self.last_ledger(), self.shared.clock.now())
    }

    fn last_ledger(&self) -> Ledger {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }

    async fn travel(&self) {
        if !self.round_trip.is_zero() {
            sleep(self.round_trip / 2).await;
        }
    }
}
