//! Instants as people and programs read them. A server chooses them, so any value must do.

use std::time::{Duration, SystemTime};

/// Returns an instant as RFC 3339 writes it, to the second.
pub(crate) fn instant(at: SystemTime) -> String {
    // humantime panics outside the years 1970 to 9999.
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    if at < SystemTime::UNIX_EPOCH || at > last {
        return "a time outside the calendar".to_owned();
    }
    humantime::format_rfc3339_seconds(at).to_string()
}

/// Returns the day of an instant.
pub(crate) fn day(at: SystemTime) -> String {
    let instant = instant(at);
    instant.split_once('T').map_or(instant.clone(), |(day, _)| day.to_owned())
}

/// Returns a length of time in seconds, rounded up.
pub(crate) fn seconds(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_nanos() > 0)
}

/// Returns the seconds from `now` to `at`, rounded up; 0 where it has passed.
pub(crate) fn seconds_until(at: SystemTime, now: SystemTime) -> u64 {
    seconds(at.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_any_instant_without_panicking() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(instant(at(1_922_659_200)), "2030-12-05T00:00:00Z");
        assert_eq!(day(at(1_922_659_200)), "2030-12-05");
        assert_eq!(instant(at(253_402_300_800)), "a time outside the calendar");
        assert_eq!(seconds_until(at(10), at(12)), 0);
    }
}
