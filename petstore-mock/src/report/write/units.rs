//! Times and numbers in words.

use std::time::Duration;

use crate::report::finding::{Evidence, Finding};

/// How many requests of one piece of evidence are named.
const MOST: usize = 12;

/// Writes a length of time in seconds, with as many digits as it has, up to milliseconds.
pub(in crate::report) fn seconds(time: Duration) -> String {
    let text = format!("{:.3}", time.as_secs_f64());
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Writes the instant of evidence, in UTC.
pub(super) fn instant(evidence: &Evidence) -> String {
    humantime::format_rfc3339_millis(evidence.at()).to_string()
}

/// Writes the numbers of the requests of evidence.
pub(super) fn numbers(evidence: &Evidence) -> String {
    let shown: Vec<_> = evidence.requests().iter().take(MOST).map(u64::to_string).collect();
    let more = if evidence.requests().len() > MOST { ", …" } else { "" };
    let noun = if shown.len() == 1 { "request" } else { "requests" };
    format!("{noun} {}{more}", shown.join(", "))
}

/// Writes how often a rule was broken.
pub(super) fn times(finding: &Finding) -> String {
    match finding.count() {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// Writes how many there are of something.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Returns how often a rule was broken beyond the evidence that is shown.
pub(super) fn not_shown(finding: &Finding) -> u64 {
    finding.count() - finding.evidence().len() as u64
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
