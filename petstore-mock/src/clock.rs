//! The mock's own time: where it comes from, and how a test moves it.
//!
//! Everything that depends on time (quotas, bans, `Date`, the removal of an operation) is told `now`
//! by its caller; this is the one place that reads it. Inside the crate, an instant is the
//! [`Duration`] since the Unix epoch, because that is what the service's headers speak.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The last second of the year 9999, after which HTTP has no date: no clock goes further.
const END: Duration = Duration::from_secs(253_402_300_799);

/// A clock that can be moved forward; its clones share one time.
///
/// Quotas, bans, `Date`, `Retry-After` and the removal date of the deprecated operation all hang on
/// it, so that a test can let a day pass in a moment.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use petstore_mock::Clock;
///
/// let clock = Clock::frozen(SystemTime::UNIX_EPOCH);
/// let same = clock.clone();
/// clock.advance(Duration::from_secs(86_400));
/// assert_eq!(same.now(), SystemTime::UNIX_EPOCH + Duration::from_secs(86_400));
/// ```
#[derive(Clone)]
pub struct Clock(Arc<Inner>);

struct Inner {
    source: Source,
    /// How far `advance` has moved the clock, in microseconds: half a million years fit.
    moved: AtomicU64,
}

enum Source {
    System,
    Frozen(Duration),
    Runtime { start: Duration, anchor: tokio::time::Instant },
}

impl Clock {
    /// Returns a clock that follows the machine's.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Source::System)
    }

    /// Returns a clock that stands still at `at` until it is advanced.
    ///
    /// An instant before 1970 or after the year 9999 becomes the nearest one in between.
    #[must_use]
    pub fn frozen(at: SystemTime) -> Self {
        Self::new(Source::Frozen(since_epoch(at)))
    }

    /// Returns a clock that reads `start` now and then follows the time of the tokio runtime,
    /// paused time (`tokio::time::pause`) included.
    ///
    /// Make it on the runtime it is to follow.
    #[must_use]
    pub fn runtime(start: SystemTime) -> Self {
        Self::new(Source::Runtime {
            start: since_epoch(start),
            anchor: tokio::time::Instant::now(),
        })
    }

    fn new(source: Source) -> Self {
        Self(Arc::new(Inner { source, moved: AtomicU64::new(0) }))
    }

    /// Returns the time it is, between 1970 and the end of the year 9999.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + self.since_epoch()
    }

    /// Moves the clock forward, for all its clones, in steps of a microsecond (rounded up).
    ///
    /// It stops at the end of the year 9999, the last that an HTTP date can name.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        let add = |moved: u64| Some(moved.saturating_add(by));
        // The closure never declines, so neither does this.
        let _ = self.0.moved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Returns the time since the Unix epoch.
    pub(crate) fn since_epoch(&self) -> Duration {
        let base = match &self.0.source {
            Source::System => since_epoch(system_now()),
            Source::Frozen(at) => *at,
            Source::Runtime { start, anchor } => {
                let passed = tokio::time::Instant::now().saturating_duration_since(*anchor);
                start.saturating_add(passed)
            }
        };
        let moved = Duration::from_micros(self.0.moved.load(Ordering::Relaxed));
        base.saturating_add(moved).min(END)
    }

    /// Returns how far the clock can still be moved.
    pub(crate) fn room(&self) -> Duration {
        END - self.since_epoch()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.source {
            Source::System => "system",
            Source::Frozen(_) => "frozen",
            Source::Runtime { .. } => "runtime",
        };
        f.debug_struct("Clock")
            .field("kind", &kind)
            .field("now", &httpdate::HttpDate::from(self.now()).to_string())
            .finish()
    }
}

fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().min(END)
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads it")]
fn system_now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_at_the_end_of_the_year_9999() {
        let clock = Clock::frozen(UNIX_EPOCH);
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!(clock.since_epoch(), END);
        assert_eq!(clock.room(), Duration::ZERO);
        assert_eq!(httpdate::fmt_http_date(clock.now()), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn an_instant_before_the_epoch_becomes_the_epoch() {
        let clock = Clock::frozen(UNIX_EPOCH - Duration::from_secs(5));
        assert_eq!(clock.now(), UNIX_EPOCH);
    }

    #[test]
    fn rounds_a_step_up_to_a_microsecond() {
        let clock = Clock::frozen(UNIX_EPOCH);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(clock.since_epoch(), Duration::from_micros(1));
    }

    #[tokio::test(start_paused = true)]
    async fn follows_the_paused_time_of_the_runtime() {
        let clock = Clock::runtime(UNIX_EPOCH);
        tokio::time::sleep(Duration::from_secs(90)).await;
        clock.advance(Duration::from_secs(10));
        assert_eq!(clock.now(), UNIX_EPOCH + Duration::from_secs(100));
    }
}
