//! The clock of limiters: the runtime's, which tests may pause, or that of a test's service.
//!
//! The runtime's clock stands still while the machine is suspended, but quotas reset meanwhile. So the time of
//! a suspension is added.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::quota::instant::{LedgerTime, SECOND, micros};
use crate::clock;

/// How often it is checked whether the machine was suspended.
const SUSPENSION_INTERVAL: i64 = SECOND / 10;

type ServiceNow = Arc<dyn Fn() -> SystemTime + Send + Sync>;
type Suspended = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The source of time: the machine, unless a test replaces it.
#[derive(Clone, Default)]
pub(crate) struct TimeSource {
    /// The clock of a test's service.
    service: Option<ServiceNow>,
    /// For how long a test's machine has been suspended.
    suspended: Option<Suspended>,
}

impl TimeSource {
    /// Creates the time of a test's service.
    #[cfg(feature = "test-util")]
    pub(crate) fn of_service(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            service: Some(Arc::new(now)),
            suspended: None,
        }
    }

    /// Creates the time of a machine that a test suspends.
    #[cfg(test)]
    pub(crate) fn of_machine(suspended: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self {
            service: None,
            suspended: Some(Arc::new(suspended)),
        }
    }
}

/// The clock of the limiters of a process.
pub(crate) struct LimiterClock {
    source: TimeSource,
    start: Instant,
    /// For how long the machine has been suspended, and when that was checked, in microseconds.
    suspended: AtomicI64,
    checked_at: AtomicI64,
}

impl LimiterClock {
    pub(crate) fn start(source: TimeSource) -> Self {
        Self {
            source,
            start: clock::now(),
            suspended: AtomicI64::new(0),
            checked_at: AtomicI64::new(i64::MIN),
        }
    }

    pub(crate) fn now(&self) -> LedgerTime {
        if let Some(now) = &self.source.service {
            let since = now().duration_since(SystemTime::UNIX_EPOCH);
            return LedgerTime(micros(since.unwrap_or_default()));
        }
        let now = clock::now();
        // A test's paused runtime may be older than this clock.
        let since = micros(now.saturating_duration_since(self.start));
        let until = micros(self.start.saturating_duration_since(now));
        LedgerTime(since - until).plus(self.suspended(since - until))
    }

    /// Returns for how long the machine has been suspended.
    fn suspended(&self, now: i64) -> i64 {
        // Who sees the time of a check also sees its result.
        let checked_at = self.checked_at.load(Ordering::Acquire);
        if (checked_at..checked_at.saturating_add(SUSPENSION_INTERVAL)).contains(&now) {
            return self.suspended.load(Ordering::Relaxed);
        }
        let suspended = micros(match &self.source.suspended {
            Some(suspended) => suspended(),
            None => clock::suspended(),
        });
        // Time never goes back, even if a wall clock is set back by which suspensions are noticed.
        let known = self.suspended.fetch_max(suspended, Ordering::Relaxed);
        self.checked_at.store(now, Ordering::Release);
        suspended.max(known)
    }

    /// Returns the time of the wall clock.
    pub(crate) fn wall(&self) -> SystemTime {
        match &self.source.service {
            Some(now) => now(),
            None => clock::wall(),
        }
    }

    /// Returns whether a test may move this clock, without a timer noticing it.
    pub(crate) fn is_of_service(&self) -> bool {
        self.source.service.is_some()
    }
}
