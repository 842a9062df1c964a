//! Times and numbers in the texts of the report.

use std::{
    fmt::Display,
    time::{Duration, SystemTime},
};

use crate::clock::instant;

/// Formats seconds, with up to three decimals.
pub(super) fn seconds(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats the pause before a request: in milliseconds, if it is short.
pub(super) fn pause(time: Duration) -> String {
    if time >= Duration::from_secs(1) {
        return seconds(time.as_secs_f64());
    }
    let text = format!("{:.1}", time.as_secs_f64() * 1_000.0);
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats the time of day of an instant since the Unix epoch, in UTC.
pub(super) fn time_of_day(at: Duration) -> String {
    clock_time(instant(at))
}

/// Formats a time of day in UTC, with the milliseconds if there are any.
pub(super) fn clock_time(at: SystemTime) -> String {
    let text = humantime::format_rfc3339_millis(at).to_string();
    let time = text.get(11..23).unwrap_or(&text);
    match time.split_once('.') {
        Some((whole, "000")) => whole.to_owned(),
        _ => time.trim_end_matches('0').to_owned(),
    }
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

/// Formats a list, with `and` before the last item.
pub(super) fn list(items: &[impl Display]) -> String {
    let mut text = String::new();
    for (place, item) in items.iter().enumerate() {
        let separator = match place {
            0 => "",
            _ if place + 1 == items.len() => " and ",
            _ => ", ",
        };
        text += &format!("{separator}{item}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_no_needless_digits() {
        let texts = [0.0, 50.0, 0.003, 100.0].map(seconds);
        assert_eq!(texts, ["0 s", "50 s", "0.003 s", "100 s"]);
        let pauses = [400, 2_345, 10_000, 1_500_000].map(Duration::from_micros);
        assert_eq!(pauses.map(pause), ["0.4 ms", "2.3 ms", "10 ms", "1.5 s"]);
    }

    #[test]
    fn a_time_of_day_has_milliseconds_only_if_there_are_any() {
        let times = [3_600_000, 3_610_000, 3_610_450].map(Duration::from_millis);
        assert_eq!(
            times.map(time_of_day),
            ["01:00:00", "01:00:10", "01:00:10.45"]
        );
    }

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!([1, 2, 3].map(times), ["once", "twice", "3 times"]);
        assert_eq!(
            [0, 1, 2].map(|n| count(n, "pet")),
            ["0 pets", "1 pet", "2 pets"]
        );
        assert_eq!(list(&[1]), "1");
        assert_eq!(list(&[1, 2]), "1 and 2");
        assert_eq!(list(&[1, 2, 3]), "1, 2 and 3");
    }
}
