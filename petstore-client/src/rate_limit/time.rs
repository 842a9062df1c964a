//! The service's clock instead of the runtime's, for tests that move a mock's clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::quota::clock::{LocalTime, micros};
use crate::clock;

/// How often a waiter checks whether the clock was moved.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A clock for limiters. Their local time is the time since it was created.
#[derive(Clone)]
pub(crate) struct TestClock {
    start: SystemTime,
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl TestClock {
    pub(crate) fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            start: now(),
            now: Arc::new(now),
        }
    }

    pub(super) fn wall(&self) -> SystemTime {
        (self.now)()
    }

    pub(super) fn local(&self) -> LocalTime {
        LocalTime(micros(
            self.wall().duration_since(self.start).unwrap_or_default(),
        ))
    }

    /// Converts a local time to an instant of the runtime, assuming that the clock is not moved.
    pub(super) fn instant(&self, at: LocalTime) -> Instant {
        clock::after(clock::now(), at.since(self.local()))
    }

    /// Returns when a waiter that would wake at `wake` checks again.
    pub(super) fn look(&self, wake: Instant) -> Instant {
        wake.min(clock::now() + LOOK_INTERVAL)
    }
}

impl fmt::Debug for TestClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClock")
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}
