//! Retry-After: in any form that RFC 9110, section 10.2.3, knows, and in some that it doesn't.

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderValue, header::RETRY_AFTER};
use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    date::http_date,
};

/// What `Retry-After` says; the numbers are seconds from the mock's now.
///
/// ```
/// use petstore_mock::RetryAfter;
///
/// let json = serde_json::to_string(&RetryAfter::Asctime(30))?;
/// assert_eq!(json, r#"{"asctime":30}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RetryAfter {
    /// `30`
    Seconds(u64),
    /// `Thu, 01 Jan 2026 00:00:40 GMT`: what RFC 9110, section 5.6.7, prefers.
    HttpDate(u64),
    /// `Thursday, 01-Jan-26 00:00:40 GMT`: obsolete, but to be understood.
    Rfc850(u64),
    /// `Thu Jan  1 00:00:40 2026`: obsolete, but to be understood.
    Asctime(u64),
    /// `1767225640`: a Unix timestamp, which some services send against the rule.
    Epoch(u64),
    /// Any text, such as `soon` or none at all; what can't stand in a header becomes `?`.
    Text(String),
    /// It is not there.
    Missing,
}

impl Act for RetryAfter {
    fn act(&self, answer: &mut Answer) -> bool {
        let at = |seconds: &u64| answer.now.saturating_add(Duration::from_secs(*seconds));
        let value = match self {
            Self::Missing => return answer.headers.remove(RETRY_AFTER).is_some(),
            Self::Seconds(seconds) => Some(HeaderValue::from(*seconds)),
            Self::HttpDate(seconds) => http_date(at(seconds)),
            Self::Rfc850(seconds) => written(at(seconds), rfc_850),
            Self::Asctime(seconds) => written(at(seconds), asctime),
            Self::Epoch(seconds) => Some(HeaderValue::from(at(seconds).as_secs())),
            Self::Text(text) => {
                let fit = |byte: u8| if byte < b' ' || byte == 0x7f { b'?' } else { byte };
                HeaderValue::from_bytes(&text.bytes().map(fit).collect::<Vec<u8>>()).ok()
            }
        };
        let Some(value) = value else {
            return false;
        };
        answer.headers.insert(RETRY_AFTER, value);
        true
    }
}

/// Writes a time in one of the old forms, from the parts of the new one.
fn written(at: Duration, form: fn(&Parts<'_>) -> String) -> Option<HeaderValue> {
    let date = httpdate::fmt_http_date(UNIX_EPOCH.checked_add(at.min(crate::clock::END))?);
    // "Thu, 01 Jan 2026 00:00:40 GMT": the form is fixed, column by column.
    let part = |from, to| date.get(from..to).unwrap_or_default();
    let parts = Parts {
        weekday: part(0, 3),
        day: part(5, 7),
        month: part(8, 11),
        year: part(12, 16),
        time: part(17, 25),
    };
    HeaderValue::try_from(form(&parts)).ok()
}

struct Parts<'a> {
    weekday: &'a str,
    day: &'a str,
    month: &'a str,
    year: &'a str,
    time: &'a str,
}

fn rfc_850(Parts { weekday, day, month, year, time }: &Parts<'_>) -> String {
    let rest = match *weekday {
        "Tue" => "sday",
        "Wed" => "nesday",
        "Thu" => "rsday",
        "Sat" => "urday",
        _ => "day",
    };
    let year = year.get(2..).unwrap_or_default();
    format!("{weekday}{rest}, {day}-{month}-{year} {time} GMT")
}

fn asctime(Parts { weekday, day, month, year, time }: &Parts<'_>) -> String {
    let day = day.trim_start_matches('0');
    format!("{weekday} {month} {day:>2} {time} {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(form: &RetryAfter) -> String {
        let now = Duration::from_secs(1_767_225_610);
        let mut answer = Answer { now, ..Answer::default() };
        assert!(form.act(&mut answer));
        answer.headers[RETRY_AFTER].to_str().unwrap().to_owned()
    }

    #[test]
    fn says_the_same_moment_in_every_form() {
        assert_eq!(said(&RetryAfter::Seconds(30)), "30");
        assert_eq!(said(&RetryAfter::HttpDate(30)), "Thu, 01 Jan 2026 00:00:40 GMT");
        assert_eq!(said(&RetryAfter::Rfc850(30)), "Thursday, 01-Jan-26 00:00:40 GMT");
        assert_eq!(said(&RetryAfter::Asctime(30)), "Thu Jan  1 00:00:40 2026");
        assert_eq!(said(&RetryAfter::Epoch(30)), "1767225640");
    }

    #[test]
    fn the_old_forms_of_every_weekday_are_read_back() {
        for day in 0..14 {
            let seconds = day * 86_400;
            let expected = UNIX_EPOCH + Duration::from_secs(1_767_225_610 + seconds);
            for form in [RetryAfter::Rfc850(seconds), RetryAfter::Asctime(seconds)] {
                assert_eq!(httpdate::parse_http_date(&said(&form)).unwrap(), expected, "{form:?}");
            }
        }
    }

    #[test]
    fn says_what_is_no_time_at_all() {
        assert_eq!(said(&RetryAfter::Text(String::new())), "");
        assert_eq!(said(&RetryAfter::Text("so\non".to_owned())), "so?on");
        assert_eq!(said(&RetryAfter::HttpDate(u64::MAX)), "Fri, 31 Dec 9999 23:59:59 GMT");
        let mut answer = Answer::default();
        assert!(!RetryAfter::Missing.act(&mut answer), "there is none to take away");
    }
}
