//! The time that a clock follows: that of the machine or of a tokio runtime.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::real_time;

/// The time that a clock follows.
pub(super) enum Source {
    /// The machine's time. Keeps the latest reading, because the mock's clock must not go back if
    /// the machine's clock does. It is in nanoseconds since the Unix epoch, which is enough until
    /// the year 2554.
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

    /// Returns the time since a fixed instant. It never goes back.
    pub(super) fn read(&self) -> Duration {
        match self {
            Self::System(latest) => {
                let now = u64::try_from(system_now().as_nanos()).unwrap_or(u64::MAX);
                Duration::from_nanos(now.max(latest.fetch_max(now, Ordering::Relaxed)))
            }
            Self::Runtime(anchor) => tokio::time::Instant::now().saturating_duration_since(*anchor),
        }
    }

    /// Waits for this long, but for a few weeks at most.
    pub(super) async fn pass(&self, wait: Duration) {
        match self {
            Self::System(_) => real_time::sleep(wait).await,
            Self::Runtime(_) => tokio::time::sleep(wait).await,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "only this module reads the machine's clock"
)]
fn system_now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
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
