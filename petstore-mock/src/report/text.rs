//! Times and numbers in the texts of the report.

use std::time::{Duration, SystemTime};

use crate::clock::instant;

/// A time that is at most this long after the moment that the reader knows is shown without its
/// date.
const SAME_DAY: Duration = Duration::from_secs(12 * 60 * 60);

/// Formats a duration in seconds, with up to three decimals.
pub(super) fn seconds(time: Duration) -> String {
    let text = format!("{:.3}", time.as_secs_f64());
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a time of day in UTC, with its date if it is long after `now`.
pub(super) fn clock_time(at: Duration, now: Duration) -> String {
    if at.saturating_sub(now) > SAME_DAY {
        return date_time(instant(at));
    }
    time_of_day(instant(at))
}

/// Formats a date and time in UTC.
pub(super) fn date_time(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

/// Formats a time of day in UTC.
pub(super) fn time_of_day(at: SystemTime) -> String {
    let text = date_time(at);
    text.get(11..23).unwrap_or(&text).to_owned()
}

/// Formats a number of times.
pub(super) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// Formats a number with a noun.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_no_needless_digits() {
        for (milliseconds, text) in [
            (0, "0 s"),
            (50_000, "50 s"),
            (1_500, "1.5 s"),
            (3, "0.003 s"),
            (100_000, "100 s"),
        ] {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let hours = |hours: u64| Duration::from_secs(hours * 3_600);
        assert_eq!(clock_time(hours(23), hours(20)), "23:00:00.000");
        assert_eq!(clock_time(hours(25), hours(24)), "01:00:00.000");
        assert_eq!(clock_time(hours(24), hours(1)), "1970-01-02T00:00:00.000Z");
    }

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!([1, 2, 3].map(times), ["once", "twice", "3 times"]);
        assert_eq!(
            [0, 1, 2].map(|n| count(n, "pet")),
            ["0 pets", "1 pet", "2 pets"]
        );
    }
}
