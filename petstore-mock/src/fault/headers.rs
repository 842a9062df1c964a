//! Effects on headers.

use std::time::Duration;

use http::{HeaderName, HeaderValue, header::RETRY_AFTER};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::change::FaultTarget;
use crate::{clock::instant, operation::RATE_HEADERS, text::printable};

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

/// The value of `Retry-After`, in seconds from the mock's current time. For any other value, use
/// [`Effect::SetHeader`](crate::Effect::SetHeader).
///
/// ```
/// use petstore_mock::RetryAfter;
///
/// let json = serde_json::to_string(&RetryAfter::HttpDate(30))?;
/// assert_eq!(json, r#"{"httpDate":30}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RetryAfter {
    /// `30`
    Seconds(u64),
    /// `Thu, 01 Jan 2026 00:00:40 GMT`
    HttpDate(u64),
}

impl RetryAfter {
    pub(super) fn apply(self, target: &mut FaultTarget<'_>) -> bool {
        let text = match self {
            Self::Seconds(seconds) => seconds.to_string(),
            Self::HttpDate(seconds) => {
                let at = target.now().saturating_add(Duration::from_secs(seconds));
                httpdate::fmt_http_date(instant(at))
            }
        };
        HeaderValue::try_from(text).is_ok_and(|value| target.set_header(RETRY_AFTER, Some(value)))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Response;

    use super::*;

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        for (form, text) in [
            (RetryAfter::Seconds(30), "30"),
            (RetryAfter::HttpDate(30), "Thu, 01 Jan 2026 00:00:40 GMT"),
            (
                RetryAfter::HttpDate(u64::MAX),
                "Fri, 31 Dec 9999 23:59:59 GMT",
            ),
        ] {
            let now = Duration::from_secs(1_767_225_610);
            let mut response = Response::new(Bytes::new());
            assert!(form.apply(&mut FaultTarget::new(&mut response, now, false)));
            assert_eq!(response.headers()[RETRY_AFTER], text);
        }
    }
}
