//! Moments on the two clocks, in whole microseconds.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// A moment on the service's clock: microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Time(pub(crate) i64);

/// A moment on this process's monotonic clock: microseconds since a start of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Local(pub(crate) i64);

impl Time {
    pub(crate) fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(micros(wait)))
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        duration(self.0.saturating_sub(earlier.0))
    }

    /// Returns the same moment on a clock that is so many microseconds ahead.
    pub(crate) fn moved(self, by: i64) -> Self {
        Self(self.0.saturating_add(by))
    }

    pub(crate) fn system(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + duration(self.0)
    }
}

impl Local {
    pub(crate) fn since(self, earlier: Self) -> Duration {
        duration(self.0.saturating_sub(earlier.0))
    }
}

impl From<SystemTime> for Time {
    fn from(at: SystemTime) -> Self {
        Self(micros(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO)))
    }
}

pub(crate) fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
