//! `X-RateLimit-*` (specification, section 8) and `Retry-After` (RFC 9110, section 10.2.3).

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, header};

use super::fields::{digits, epoch, http_date, lines, values};

static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Numbers below this are taken for seconds from now, where an instant is expected: as seconds
/// since 1970 they would lie before 2001.
const FIRST_EPOCH: u64 = 1_000_000_000;
/// Numbers from this on are taken for milliseconds since 1970: as seconds they would lie beyond
/// the year 5138.
const FIRST_EPOCH_MILLIS: u64 = 100_000_000_000;

/// What a response says of the quota it describes (specification, section 8).
///
/// Which quota that is, the minute's or the day's, the service does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RateLimit {
    /// `X-RateLimit-Limit`: the requests that the quota allows.
    pub limit: u64,
    /// `X-RateLimit-Remaining`: how many of them were left when the service answered.
    pub remaining: u64,
    /// `X-RateLimit-Reset`: when the quota is whole again, on the service's clock.
    pub reset: SystemTime,
}

/// Returns the quota that a response describes, where all three headers can be right. `now` is
/// the service's time.
pub(crate) fn rate_limit(headers: &HeaderMap, now: SystemTime) -> Option<RateLimit> {
    let numbers = |name: &'static HeaderName| values(headers, name).map(digits);
    let limit = numbers(&LIMIT).flatten().min()?;
    let remaining = numbers(&REMAINING).flatten().min()?;
    let reset = numbers(&RESET).flatten().filter_map(|n| instant(n, now)).max()?;
    Some(RateLimit { limit, remaining: remaining.min(limit), reset })
}

/// Returns the wait that `Retry-After` asks for: seconds, a date in any form, reckoned against
/// `now` (the service's time), or, as some servers send it, an instant in seconds since 1970.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    lines(headers, &header::RETRY_AFTER).filter_map(|line| wait(line, now)).max()
}

fn wait(text: &str, now: SystemTime) -> Option<Duration> {
    match digits(text) {
        Some(seconds) if seconds < FIRST_EPOCH => Some(Duration::from_secs(seconds)),
        Some(at) => Some(until(instant(at, now)?, now)),
        None => match http_date(text) {
            Some(at) => Some(until(at, now)),
            // A list of numbers: the longest. (A date's own comma never leaves only digits.)
            None => {
                text.split(',').filter_map(|one| digits(one.trim())).max().and_then(|seconds| {
                    (seconds < FIRST_EPOCH).then(|| Duration::from_secs(seconds))
                })
            }
        },
    }
}

fn until(at: SystemTime, now: SystemTime) -> Duration {
    at.duration_since(now).unwrap_or(Duration::ZERO)
}

fn instant(number: u64, now: SystemTime) -> Option<SystemTime> {
    match number {
        ..FIRST_EPOCH => now.checked_add(Duration::from_secs(number)),
        FIRST_EPOCH..FIRST_EPOCH_MILLIS => epoch(number),
        _ => epoch(number.div_ceil(1000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        let mut map = HeaderMap::new();
        for (name, value) in lines.iter().map(line) {
            map.append(name, value);
        }
        map
    }

    fn waits(value: &str) -> Option<u64> {
        retry_after(&headers(&[("retry-after", value)]), at(NOW)).map(|wait| wait.as_secs())
    }

    #[test]
    fn reads_retry_after_in_every_form() {
        assert_eq!(waits("30"), Some(30));
        assert_eq!(waits(" 30 "), Some(30));
        assert_eq!(waits("Fri, 15 Jan 2027 08:00:30 GMT"), Some(30));
        assert_eq!(waits("Friday, 15-Jan-27 08:00:30 GMT"), Some(30));
        assert_eq!(waits("Fri Jan 15 08:00:30 2027"), Some(30));
        assert_eq!(waits("1800000030"), Some(30));
        assert_eq!(waits("1800000030000"), Some(30));
        assert_eq!(waits("5, 40"), Some(40));
    }

    #[test]
    fn a_date_in_the_past_asks_for_no_wait() {
        assert_eq!(waits("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0));
    }

    #[test]
    fn a_retry_after_that_cannot_be_right_is_absent() {
        for odd in ["", "-1", "1.5", "soon", "inf", "18446744073709551616", "9e9"] {
            assert_eq!(waits(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_wait_of_years_is_not_shortened() {
        assert_eq!(waits("63072000"), Some(63_072_000));
        assert_eq!(waits("999999999"), Some(999_999_999));
        assert_eq!(waits("Fri, 01 Jan 2100 00:00:00 GMT"), Some(4_102_444_800 - NOW));
    }

    #[test]
    fn the_longest_of_several_waits_stands() {
        let both = headers(&[("retry-after", "5"), ("retry-after", "9")]);
        assert_eq!(retry_after(&both, at(NOW)), Some(Duration::from_secs(9)));
    }

    fn quota(limit: &str, remaining: &str, reset: &str) -> Option<RateLimit> {
        let lines = [
            ("x-ratelimit-limit", limit),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset", reset),
        ];
        rate_limit(&headers(&lines), at(NOW))
    }

    #[test]
    fn reads_a_reset_in_seconds_milliseconds_or_from_now() {
        for form in ["1800000060", "1800000060000", "60"] {
            let quota = quota("60", "59", form).unwrap();
            assert_eq!((quota.limit, quota.remaining, quota.reset), (60, 59, at(NOW + 60)));
        }
    }

    #[test]
    fn takes_the_most_restrictive_of_several_values() {
        let quota = quota("60, 50", "7, 9", "1800000010, 1800000060").unwrap();
        assert_eq!((quota.limit, quota.remaining, quota.reset), (50, 7, at(NOW + 60)));
    }

    #[test]
    fn never_believes_more_remaining_than_the_limit() {
        assert_eq!(quota("60", "1000000", "60").unwrap().remaining, 60);
    }

    #[test]
    fn garbage_counts_as_absent() {
        for odd in ["", "-1", "NaN", "1e30", "99999999999999999999999", "∞"] {
            assert_eq!(quota("60", odd, "60"), None, "{odd}");
            assert_eq!(quota(odd, "1", "60"), None, "{odd}");
            assert_eq!(quota("60", "1", odd), None, "{odd}");
        }
        assert_eq!(quota("60", "1", "18446744073709551615"), None);
    }
}
