//! Instants on the ledger's clock and on the service's, and lengths in microseconds.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const DAY: i64 = 24 * 60 * MINUTE;

/// An instant on the clock of the ledger's store, in microseconds. All holders agree on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LedgerTime(pub(crate) i64);

/// An instant on the service's clock, in microseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ServiceTime(pub(crate) i64);

impl LedgerTime {
    pub(crate) fn plus(self, length: i64) -> Self {
        Self(self.0.saturating_add(length))
    }

    /// Returns the time since an earlier instant, or zero.
    pub(crate) fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).max(0)
    }
}

impl ServiceTime {
    pub(crate) fn plus(self, length: i64) -> Self {
        Self(self.0.saturating_add(length))
    }

    /// Returns the time since another instant, which is negative if that is later.
    pub(crate) fn after(self, other: Self) -> i64 {
        self.0.saturating_sub(other.0)
    }

    pub(crate) fn system(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + duration(self.0)
    }
}

impl From<SystemTime> for ServiceTime {
    fn from(at: SystemTime) -> Self {
        let since = at.duration_since(SystemTime::UNIX_EPOCH);
        Self(micros(since.unwrap_or_default()))
    }
}

pub(crate) fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

/// Converts a length. A negative one is zero.
pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
