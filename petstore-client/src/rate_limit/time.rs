//! The clocks of limiters: the runtime's, which tests may pause, or that of a test's service.
//!
//! The runtime's clock stands still while the machine is suspended, but the quotas reset. Local time
//! therefore moves ahead by the length of a suspension.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::quota::clock::{LocalTime, SECOND, micros};
use crate::clock;

/// How often a waiter checks whether a test has moved its clock.
const WATCH_INTERVAL: Duration = Duration::from_millis(25);
/// If a test's clock is ahead by at most this, in microseconds, it counts as not moved.
const MAX_ROUNDING: i64 = 1_000;
/// How often the limiter checks whether the machine was suspended, in microseconds.
const SUSPENSION_INTERVAL: i64 = 100_000;
/// The shortest suspension that matters.
const MIN_SUSPENSION: i64 = SECOND;

type ServiceNow = Arc<dyn Fn() -> SystemTime + Send + Sync>;
type Suspended = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The source of a limiter's time: the machine, unless a test replaces it.
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

    /// Returns for how long the machine has been suspended, in microseconds.
    fn suspended(&self) -> i64 {
        match (&self.service, &self.suspended) {
            (Some(_), _) => 0,
            (None, Some(suspended)) => micros(suspended()),
            (None, None) => micros(clock::suspended()),
        }
    }
}

impl fmt::Debug for TimeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeSource").finish_non_exhaustive()
    }
}

/// The local time of one limiter. It begins with the limiter.
pub(crate) struct Clock {
    source: TimeSource,
    start: Instant,
    /// The start on the clock of a test's service.
    service_start: SystemTime,
    /// How far local time is ahead of the runtime's time since the start, in microseconds. The
    /// reasons are suspensions, and the clock of a shared store.
    ahead: AtomicI64,
    /// For how long the machine had been suspended, and when that was checked.
    suspended: AtomicI64,
    checked_at: AtomicI64,
    /// Held by the waiter that watches a test's clock.
    watch: Mutex<()>,
}

impl Clock {
    pub(crate) fn start(source: TimeSource) -> Self {
        Self {
            start: clock::now(),
            service_start: source
                .service
                .as_ref()
                .map_or_else(clock::wall, |now| now()),
            ahead: AtomicI64::new(0),
            suspended: AtomicI64::new(source.suspended()),
            checked_at: AtomicI64::new(0),
            watch: Mutex::new(()),
            source,
        }
    }

    pub(crate) fn now(&self) -> LocalTime {
        let passed = match &self.source.service {
            Some(now) => now().duration_since(self.service_start).unwrap_or_default(),
            None => self.passed(),
        };
        LocalTime(micros(passed)).moved(self.ahead.load(Ordering::Relaxed))
    }

    /// Converts a local time to an instant of the runtime. It is wrong if a test moves its clock
    /// before then.
    pub(crate) fn instant(&self, at: LocalTime) -> Instant {
        if self.source.service.is_some() {
            return clock::after(clock::now(), at.since(self.now()));
        }
        let since = at.since(LocalTime(self.ahead.load(Ordering::Relaxed)));
        clock::after(self.start, since)
    }

    /// Returns the time of the wall clock.
    pub(crate) fn wall(&self) -> SystemTime {
        match &self.source.service {
            Some(now) => now(),
            None => clock::wall(),
        }
    }

    /// Moves local time ahead if the machine has been suspended, and returns whether it has. Checks
    /// now if `must` is set, otherwise only at intervals.
    pub(crate) fn notice_suspension(&self, must: bool) -> bool {
        let passed = micros(self.passed());
        let is_due = passed >= self.checked_at.load(Ordering::Relaxed) + SUSPENSION_INTERVAL;
        if !must && !is_due {
            return false;
        }
        self.checked_at.store(passed, Ordering::Relaxed);
        let suspended = self.source.suspended();
        let known = self.suspended.load(Ordering::Relaxed);
        let length = suspended.saturating_sub(known);
        if (0..MIN_SUSPENSION).contains(&length) {
            return false;
        }
        // It can only fall if the wall clock measures suspensions and was set back.
        self.suspended.store(suspended, Ordering::Relaxed);
        if length > 0 {
            self.shift(length);
        }
        length > 0
    }

    /// Moves local time to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&self, by: i64) {
        self.ahead.fetch_add(by, Ordering::Relaxed);
    }

    /// Completes when a test has moved its clock ahead. One waiter watches for all. Without a
    /// test's clock, this never completes.
    pub(crate) async fn moved(&self) {
        let Some(service_now) = &self.source.service else {
            return std::future::pending().await;
        };
        let _watch = self.watch.lock().await;
        let (began, service_began) = (clock::now(), service_now());
        loop {
            sleep(WATCH_INTERVAL).await;
            let passed = clock::now().saturating_duration_since(began);
            let service_passed = service_now().duration_since(service_began);
            if micros(service_passed.unwrap_or_default()) > micros(passed) + MAX_ROUNDING {
                return;
            }
        }
    }

    pub(crate) fn is_of_service(&self) -> bool {
        self.source.service.is_some()
    }

    /// Returns the time since the start, on the runtime's clock.
    fn passed(&self) -> Duration {
        clock::now().saturating_duration_since(self.start)
    }
}
