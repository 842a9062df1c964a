//! Where the time comes from that a clock is set by: the machine, or the caller's runtime.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::alarm;

/// What passes by itself.
pub(super) enum Source {
    /// The machine's time. The latest reading, in nanoseconds since the Unix epoch (they fit until the
    /// year 2554), since the machine's clock may be set back and the mock's may not.
    System(AtomicU64),
    /// The time of a tokio runtime.
    Runtime(tokio::time::Instant),
}

impl Source {
    pub(super) const fn system() -> Self {
        Self::System(AtomicU64::new(0))
    }

    pub(super) fn runtime() -> Self {
        Self::Runtime(tokio::time::Instant::now())
    }

    /// Returns the time it is, since a moment of the source's own; it never goes back.
    pub(super) fn read(&self) -> Duration {
        match self {
            Self::System(latest) => {
                let now = u64::try_from(system_now().as_nanos()).unwrap_or(u64::MAX);
                Duration::from_nanos(now.max(latest.fetch_max(now, Ordering::Relaxed)))
            }
            Self::Runtime(anchor) => tokio::time::Instant::now().saturating_duration_since(*anchor),
        }
    }

    /// Waits until this much has passed, or for a few weeks if that is shorter.
    pub(super) async fn pass(&self, wait: Duration) {
        match self {
            Self::System(_) => alarm::ring_after(wait).await,
            Self::Runtime(_) => tokio::time::sleep(wait).await,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads it")]
fn system_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stands_still_where_the_machine_is_set_back() {
        let later = u64::try_from((system_now() + Duration::from_secs(3_600)).as_nanos()).unwrap();
        let source = Source::System(AtomicU64::new(later));
        assert_eq!(source.read(), Duration::from_nanos(later));
        assert!(Source::system().read() < Duration::from_nanos(later));
    }
}
