//! Reads the time, which no other module does.
//!
//! Waits use tokio's monotonic clock, so a paused runtime controls them. The wall clock is used
//! only for responses without a `Date`.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// Returns the monotonic time.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Converts a time of the machine's clock to the runtime's clock, which tests pause and advance.
#[cfg(feature = "file-store")]
#[expect(
    clippy::disallowed_methods,
    reason = "the only use of the machine's clock"
)]
pub(crate) fn on_runtime(machine_time: Duration) -> Duration {
    const MIN_ADVANCE: Duration = Duration::from_millis(1);
    let machine = std::time::Instant::now();
    let runtime = now().into_std();
    match runtime.checked_duration_since(machine) {
        // A smaller difference is only the time between the two readings of the clocks.
        Some(ahead) if ahead < MIN_ADVANCE => machine_time,
        Some(ahead) => machine_time.saturating_add(ahead),
        None => machine_time.saturating_sub(machine.saturating_duration_since(runtime)),
    }
}

/// Returns for how long the machine has been suspended since it was started.
#[cfg(target_os = "linux")]
pub(crate) fn suspended() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    let [boot, monotonic] = [ClockId::Boottime, ClockId::Monotonic]
        .map(|id| Duration::try_from(clock_gettime(id)).unwrap_or_default());
    boot.saturating_sub(monotonic)
}

/// Returns for how long the machine has been suspended since this was first called: the monotonic clock stands still
/// meanwhile, and the wall clock does not. A wall clock that is set forward looks like a suspension, and one that is
/// set back hides some.
#[cfg(not(target_os = "linux"))]
#[expect(
    clippy::disallowed_methods,
    reason = "no other clock goes on while the machine is suspended"
)]
pub(crate) fn suspended() -> Duration {
    static START: std::sync::LazyLock<(std::time::Instant, SystemTime)> =
        std::sync::LazyLock::new(|| (std::time::Instant::now(), wall()));
    let (start, wall_start) = *START;
    let passed = wall().duration_since(wall_start).unwrap_or_default();
    passed.saturating_sub(start.elapsed())
}

/// Returns the time of the wall clock.
#[expect(clippy::disallowed_methods, reason = "the only use of the wall clock")]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}

/// Returns `start + wait`, or an instant beyond any wait that this crate accepts.
pub(crate) fn after(start: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
    start + wait.min(FAR)
}

/// Formats a time as in RFC 9110.
pub(crate) fn http_date(at: SystemTime) -> String {
    // httpdate panics outside the years 1970 to 9998, and a server controls this value.
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_370_764_799);
    if at < SystemTime::UNIX_EPOCH || at > last {
        return "a time outside the calendar".to_owned();
    }
    httpdate::fmt_http_date(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_any_moment_without_panicking() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(http_date(at(0)), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(
            http_date(at(253_370_764_799)),
            "Thu, 31 Dec 9998 23:59:59 GMT"
        );
        assert_eq!(
            http_date(at(u64::from(u32::MAX) * 1000)),
            "a time outside the calendar"
        );
    }
}
