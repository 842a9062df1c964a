//! Formats times and durations for people and programs. Servers control the values,
//! so every value must work.

use std::time::{Duration, SystemTime};

use indicatif::HumanCount;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// The current time, and the format of times: the local time zone for people, else UTC.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    now: fn() -> SystemTime,
    /// The local time zone, for people.
    zone: Option<TimeZone>,
}

impl Clock {
    /// Creates a clock that writes times in UTC.
    pub(crate) fn new(now: fn() -> SystemTime) -> Self {
        Self { now, zone: None }
    }

    /// Returns a clock that writes times for people.
    pub(crate) fn local(mut self, zone: TimeZone) -> Self {
        self.zone = Some(zone);
        self
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.now)()
    }

    /// Returns a wait and its end, such as `in 41 s (07:45:00)`. For a week or more, only the day.
    pub(crate) fn until(&self, at: SystemTime, remaining: Duration) -> String {
        if self.zone.is_some() && remaining >= Duration::from_secs(7 * 86_400) {
            return format!("on {}", day(at));
        }
        format!("in {} ({})", duration(remaining), self.instant(at))
    }

    /// Formats a time: `07:45:00` today, `Mon 01:00` this week, `5 December 2030` otherwise.
    pub(crate) fn instant(&self, at: SystemTime) -> String {
        let (Some(then), Some(now)) = (self.zoned(at), self.zoned(self.now())) else {
            return instant(at);
        };
        let week = Duration::from_secs(7 * 86_400);
        let near = [at.duration_since(self.now()), self.now().duration_since(at)];
        if then.date() == now.date() {
            then.strftime("%H:%M:%S").to_string()
        } else if near.into_iter().flatten().any(|apart| apart < week) {
            then.strftime("%a %H:%M").to_string()
        } else {
            then.strftime("%-d %B %Y").to_string()
        }
    }

    fn zoned(&self, at: SystemTime) -> Option<Zoned> {
        let zone = self.zone.clone()?;
        Some(Timestamp::try_from(at).ok()?.to_zoned(zone))
    }
}

/// Formats a time as in RFC 3339, with seconds.
pub(crate) fn instant(at: SystemTime) -> String {
    match Timestamp::try_from(at) {
        Ok(at) if at.as_second() >= 0 => at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        _ => "a time outside the calendar".to_owned(),
    }
}

/// Formats the day of a time in UTC, for people.
pub(crate) fn day(at: SystemTime) -> String {
    match Timestamp::try_from(at) {
        Ok(at) => at.strftime("%-d %B %Y").to_string(),
        Err(_) => instant(at),
    }
}

/// Formats a duration with at most two units, rounded up.
pub(crate) fn duration(length: Duration) -> String {
    let seconds = seconds(length);
    let two = |one: u64, unit, rest: u64, smaller| match rest {
        0 => format!("{one} {unit}"),
        rest => format!("{one} {unit} {rest} {smaller}"),
    };
    let minutes = seconds.div_ceil(60);
    match seconds {
        1 if length <= Duration::from_millis(900) => {
            format!("0.{} s", length.as_millis().div_ceil(100).max(1))
        }
        0..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..172_800 => two(minutes / 60, "h", minutes % 60, "min"),
        _ => format!("{} days", seconds.div_ceil(86_400)),
    }
}

/// Formats a time that has passed, rounded down.
pub(crate) fn elapsed(length: Duration) -> String {
    let seconds = length.as_secs();
    let unit = match seconds {
        0 => return duration(length),
        1..3_600 => 1,
        3_600..172_800 => 60,
        _ => 86_400,
    };
    duration(Duration::from_secs(seconds - seconds % unit))
}

/// Formats a duration in seconds, rounded up.
pub(crate) fn seconds(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_nanos() > 0)
}

/// Returns the smallest round value of `--max-wait` that allows this wait.
pub(crate) fn wait_option(wait: Duration) -> String {
    match seconds(wait) {
        seconds @ ..3_600 => format!("{}m", seconds.div_ceil(60)),
        seconds => format!("{}h", seconds.div_ceil(3_600)),
    }
}

/// Formats a number with thousands separators.
pub(crate) fn count(number: impl TryInto<u64>) -> String {
    HumanCount(number.try_into().unwrap_or(u64::MAX)).to_string()
}

/// Returns a number with the singular or plural: `1 row`, `1,204 rows`.
pub(crate) fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn writes_any_instant_without_panicking() {
        assert_eq!(instant(at(1_922_659_200)), "2030-12-05T00:00:00Z");
        assert_eq!(day(at(1_922_659_200)), "5 December 2030");
        assert_eq!(instant(at(1 << 62)), "a time outside the calendar");
        assert_eq!(day(at(1 << 62)), "a time outside the calendar");
    }

    #[test]
    fn writes_an_instant_by_how_near_it_is() {
        // Sunday 22 November 2026, 06:44:19 UTC.
        let now = || at(1_795_329_859);
        let clock = Clock::new(now).local(TimeZone::fixed(jiff::tz::offset(1)));
        let until =
            |seconds| clock.until(at(1_795_329_859 + seconds), Duration::from_secs(seconds));
        assert_eq!(until(41), "in 41 s (07:45:00)");
        assert_eq!(until(62_141), "in 17 h 16 min (Mon 01:00)");
        assert_eq!(until(127_329_341), "on 5 December 2030");
        let programs = Clock::new(now);
        let end = at(1_795_329_900);
        assert_eq!(
            programs.until(end, Duration::from_secs(41)),
            "in 41 s (2026-11-22T06:45:00Z)"
        );
    }

    #[test]
    fn writes_lengths_of_time_in_two_units_rounded_up() {
        let text = |millis| duration(Duration::from_millis(millis));
        assert_eq!(
            [text(0), text(350), text(999), text(40_001)],
            ["0 s", "0.4 s", "1 s", "41 s"]
        );
        assert_eq!(
            [text(298_000), text(62_141_000)],
            ["4 min 58 s", "17 h 16 min"]
        );
        assert_eq!([text(3_600_000), text(200_000_000)], ["1 h", "3 days"]);
    }

    #[test]
    fn rounds_down_a_time_that_has_passed() {
        let text = |millis| elapsed(Duration::from_millis(millis));
        assert_eq!([text(350), text(3_001)], ["0.4 s", "3 s"]);
        assert_eq!([text(3_601_000), text(200_000_000)], ["1 h", "2 days"]);
    }

    #[test]
    fn separates_thousands() {
        assert_eq!([count(999_u64), count(1_234_567_u64)], ["999", "1,234,567"]);
    }
}
