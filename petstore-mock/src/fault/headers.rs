//! Effects on headers.

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderName, HeaderValue, header::RETRY_AFTER};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::change::FaultTarget;
use crate::{clock::END, operation::RATE_HEADERS, text::printable};

/// A header field to set, or without a value, to remove.
///
/// In JSON, it is `{"name": "content-type", "value": "text/html"}`.
///
/// ```
/// use http::{HeaderName, HeaderValue};
/// use petstore_mock::HeaderField;
///
/// let name = HeaderName::from_static("content-type");
/// let removed = HeaderField::new(name.clone(), None);
/// let html = HeaderField::new(name, HeaderValue::from_static("text/html"));
/// assert_ne!(removed, html);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderField {
    name: HeaderText<HeaderName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<HeaderText<HeaderValue>>,
}

impl HeaderField {
    /// Creates a header field.
    #[must_use]
    pub fn new(name: HeaderName, value: impl Into<Option<HeaderValue>>) -> Self {
        Self {
            name: HeaderText(name),
            value: value.into().map(HeaderText),
        }
    }

    pub(super) fn name(&self) -> HeaderName {
        self.name.0.clone()
    }

    pub(super) fn value(&self) -> Option<HeaderValue> {
        self.value.as_ref().map(|value| value.0.clone())
    }
}

/// The name or value of a header field; text in JSON. Invalid UTF-8 becomes replacement characters.
#[derive(Clone, Debug, PartialEq)]
struct HeaderText<T>(T);

impl<'de, T: TryFrom<String>> Deserialize<'de> for HeaderText<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let shown = printable(&text);
        T::try_from(text).map(Self).map_err(|_| {
            D::Error::custom(format!(
                "`{shown}` is not a valid header name or value: names have no spaces, and values no \
                 control characters but tabs"
            ))
        })
    }
}

impl<T: AsRef<[u8]>> Serialize for HeaderText<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&String::from_utf8_lossy(self.0.as_ref()))
    }
}

/// A change to the `X-RateLimit-*` headers of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum RateFault {
    /// The headers are missing.
    Missing,
    /// The values are not numbers.
    Garbage,
    /// The numbers are wrong. `None` keeps the value.
    Wrong {
        /// `X-RateLimit-Limit`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// `X-RateLimit-Remaining`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remaining: Option<u64>,
        /// `X-RateLimit-Reset`, in seconds since the Unix epoch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reset: Option<u64>,
    },
}

impl RateFault {
    pub(super) fn apply(self, target: &mut FaultTarget<'_>) -> bool {
        let values = match self {
            Self::Missing => {
                let removed = RATE_HEADERS.map(|name| target.set_header(name, None));
                return removed.contains(&true);
            }
            // A lenient parser might accept the first two.
            Self::Garbage => {
                ["1e999", "-1", "tomorrow"].map(|text| Some(HeaderValue::from_static(text)))
            }
            Self::Wrong {
                limit,
                remaining,
                reset,
            } => [limit, remaining, reset].map(|number| number.map(HeaderValue::from)),
        };
        let mut has_changed = false;
        for (name, value) in RATE_HEADERS.into_iter().zip(values) {
            has_changed |= value.is_some() && target.set_header(name, value);
        }
        has_changed
    }
}

/// The value of `Retry-After`, in the forms of RFC 9110, section 10.2.3, and in invalid ones. The
/// numbers are seconds from the mock's current time.
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
    /// `Thu, 01 Jan 2026 00:00:40 GMT`: the preferred form of RFC 9110, section 5.6.7.
    HttpDate(u64),
    /// `Thursday, 01-Jan-26 00:00:40 GMT`: obsolete, but recipients must accept it.
    Rfc850(u64),
    /// `Thu Jan  1 00:00:40 2026`: obsolete, but recipients must accept it.
    Asctime(u64),
    /// `1767225640`: a Unix timestamp, which is invalid, but which some services send.
    Epoch(u64),
    /// Any text, such as `soon` or an empty one. Characters that are invalid in a header become
    /// `?`.
    Text(String),
    /// The header is missing.
    Missing,
}

impl RetryAfter {
    pub(super) fn apply(&self, target: &mut FaultTarget<'_>) -> bool {
        let now = target.now();
        let at = |seconds: &u64| now.saturating_add(Duration::from_secs(*seconds));
        let text = match self {
            Self::Missing => return target.set_header(RETRY_AFTER, None),
            Self::Seconds(seconds) => seconds.to_string(),
            Self::HttpDate(seconds) => http_date(at(seconds)),
            Self::Rfc850(seconds) => rfc_850(&http_date(at(seconds))),
            Self::Asctime(seconds) => asctime(&http_date(at(seconds))),
            Self::Epoch(seconds) => at(seconds).as_secs().to_string(),
            Self::Text(text) => text.replace(|it: char| it.is_ascii_control(), "?"),
        };
        // Without control characters, it is a valid value.
        HeaderValue::try_from(text).is_ok_and(|value| target.set_header(RETRY_AFTER, Some(value)))
    }
}

/// Formats a time since the Unix epoch, up to the year 9999.
fn http_date(at: Duration) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + at.min(END))
}

/// Splits a date such as `Thu, 01 Jan 2026 00:00:40 GMT`, whose parts have fixed columns.
fn parts(date: &str) -> [&str; 5] {
    [0..3, 5..7, 8..11, 12..16, 17..25].map(|at| date.get(at).unwrap_or_default())
}

fn rfc_850(date: &str) -> String {
    let [weekday, day, month, year, time] = parts(date);
    let rest = match weekday {
        "Tue" => "sday",
        "Wed" => "nesday",
        "Thu" => "rsday",
        "Sat" => "urday",
        _ => "day",
    };
    let year = year.get(2..).unwrap_or_default();
    format!("{weekday}{rest}, {day}-{month}-{year} {time} GMT")
}

fn asctime(date: &str) -> String {
    let [weekday, day, month, year, time] = parts(date);
    let day = day.trim_start_matches('0');
    format!("{weekday} {month} {day:>2} {time} {year}")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Response;

    use super::*;

    fn said(form: &RetryAfter) -> Option<String> {
        let now = Duration::from_secs(1_767_225_610);
        let mut response = Response::new(Bytes::new());
        let mut target = FaultTarget::new(&mut response, now, false);
        let changed = form.apply(&mut target);
        changed.then(|| response.headers()[RETRY_AFTER].to_str().unwrap().to_owned())
    }

    #[test]
    fn retry_after_says_the_same_moment_in_every_form() {
        for (form, text) in [
            (RetryAfter::Seconds(30), "30"),
            (RetryAfter::HttpDate(30), "Thu, 01 Jan 2026 00:00:40 GMT"),
            (RetryAfter::Rfc850(30), "Thursday, 01-Jan-26 00:00:40 GMT"),
            (RetryAfter::Asctime(30), "Thu Jan  1 00:00:40 2026"),
            (RetryAfter::Epoch(30), "1767225640"),
            (RetryAfter::Text(String::new()), ""),
            (RetryAfter::Text("so\non".to_owned()), "so?on"),
            (
                RetryAfter::HttpDate(u64::MAX),
                "Fri, 31 Dec 9999 23:59:59 GMT",
            ),
        ] {
            assert_eq!(said(&form).as_deref(), Some(text), "{form:?}");
        }
        assert_eq!(
            said(&RetryAfter::Missing),
            None,
            "there is none to take away"
        );
    }

    #[test]
    fn the_old_forms_of_every_weekday_are_read_back() {
        for day in 0..14 {
            let seconds = day * 86_400;
            let expected = UNIX_EPOCH + Duration::from_secs(1_767_225_610 + seconds);
            for form in [RetryAfter::Rfc850(seconds), RetryAfter::Asctime(seconds)] {
                let text = said(&form).unwrap();
                assert_eq!(
                    httpdate::parse_http_date(&text).unwrap(),
                    expected,
                    "{form:?}"
                );
            }
        }
    }
}
