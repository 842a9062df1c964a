//! Times and numbers in words.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Writes a length of time in seconds, with as many digits as it has, up to milliseconds.
pub(super) fn seconds(time: Duration) -> String {
    let text = format!("{:.3}", time.as_secs_f64());
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Writes the time of day, in UTC, of an instant since the Unix epoch.
pub(super) fn clock_time(at: Duration) -> String {
    let text = instant(UNIX_EPOCH + at);
    text.get(11..23).unwrap_or(&text).to_owned()
}

/// Writes date and time, in UTC.
pub(super) fn instant(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

/// Writes how often something happened.
pub(super) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// Writes how many there are of something.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_no_needless_digits() {
        for (milliseconds, text) in
            [(0, "0 s"), (50_000, "50 s"), (1_500, "1.5 s"), (3, "0.003 s"), (100_000, "100 s")]
        {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), text);
        }
    }
}
