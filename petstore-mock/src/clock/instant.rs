//! The range of instants and durations, and how they are parsed and written.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

/// The last second of the year 9999, the maximum of an HTTP date and of every clock.
pub(crate) const END: Duration = Duration::from_secs(253_402_300_799);

/// Returns the time this long after the Unix epoch, at most the clock's maximum.
pub(crate) fn instant(since_epoch: Duration) -> SystemTime {
    UNIX_EPOCH + since_epoch.min(END)
}

/// Converts seconds to a duration, from 0 to 253,402,300,799 (1970 to the end of 9999).
pub(crate) fn time(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| *time <= END)
}

/// Returns the whole seconds from `now` until `until`, rounded up, and at least 1: the value of
/// `Retry-After`.
pub(crate) fn seconds_until(until: Duration, now: Duration) -> u64 {
    // Only the difference is rounded. Rounding both times could make it a second longer.
    let wait = until.saturating_sub(now);
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
        .max(1)
}

/// Durations in JSON: numbers of seconds with fractions.
pub(crate) mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let error = "a time is a number of seconds from 0 to 253402300799, such as 1.5";
        super::time(f64::deserialize(from)?).ok_or_else(|| D::Error::custom(error))
    }
}

/// Serializes an optional time as seconds since the Unix epoch.
pub(crate) fn serialize_seconds<S: Serializer>(
    at: &(impl Into<Option<SystemTime>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    (*at)
        .into()
        .map(|at| since_epoch(at).as_secs_f64())
        .serialize(serializer)
}

pub(super) fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().min(END)
}

/// Parses a time such as `2030-12-05T00:00:00Z` (RFC 3339). A date means its first second.
pub(crate) fn parse_date(text: &str) -> Result<SystemTime, &'static str> {
    let time = match text.len() {
        // A date alone.
        10 => humantime::parse_rfc3339_weak(&format!("{text}T00:00:00Z")),
        _ => humantime::parse_rfc3339_weak(text),
    };
    time.map_err(|_| "give a date such as 2030-12-05 or 2030-12-05T00:00:00Z (UTC)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_to_wait_whole_seconds_rounded_up_and_at_least_one() {
        let at = |seconds, milliseconds: u32| Duration::new(seconds, milliseconds * 1_000_000);
        assert_eq!(seconds_until(at(60, 0), at(0, 0)), 60);
        assert_eq!(seconds_until(at(60, 0), at(10, 1)), 50);
        assert_eq!(seconds_until(at(60, 0), at(59, 999)), 1);
        assert_eq!(seconds_until(at(60, 0), at(60, 0)), 1);
        assert_eq!(seconds_until(at(60, 0), Duration::MAX), 1);
        assert_eq!(seconds_until(at(301, 500), at(1, 500)), 300);
        assert_eq!(seconds_until(at(301, 500), at(1, 501)), 300);
        assert_eq!(seconds_until(at(301, 500), at(1, 499)), 301);
        assert_eq!(seconds_until(Duration::MAX, at(0, 0)), u64::MAX);
    }

    #[test]
    fn reads_dates() {
        for text in ["2030-12-05", "2030-12-05T00:00:00Z", "2030-12-05 00:00:00"] {
            assert_eq!(
                parse_date(text),
                Ok(instant(Duration::from_secs(1_922_659_200))),
                "{text}"
            );
        }
        for text in ["", "tomorrow", "2030-13-05", "-5", "2030", "1922659200"] {
            assert!(parse_date(text).is_err(), "{text}");
        }
    }
}
