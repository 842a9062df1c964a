//! Effects on headers.

use std::time::Duration;

use http::{
    HeaderName, HeaderValue,
    header::{CONTENT_LENGTH, RETRY_AFTER, TRANSFER_ENCODING},
};
use serde::{Deserialize, Serialize};

use super::change::FaultTarget;
use crate::{clock::instant, operation::RATE_HEADERS};

/// Returns why a fault must not set this header field.
pub(super) fn problem(name: &str, value: Option<&str>) -> Option<&'static str> {
    let Ok(name) = HeaderName::try_from(name) else {
        return Some("the `name` of a header field has no spaces: write it as in `x-a`");
    };
    // A wrong length would corrupt later responses.
    if [CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name) {
        return Some(
            "a fault cannot set Content-Length or Transfer-Encoding: use the effect `cut` or `body`",
        );
    }
    if value.is_some_and(|value| HeaderValue::try_from(value).is_err()) {
        return Some("the `value` of a header field has no control characters but tabs");
    }
    None
}

/// Sets a header field without a problem, or without a value, removes it.
pub(super) fn set(target: &mut FaultTarget<'_>, name: &str, value: Option<&str>) -> bool {
    let value = value.and_then(|value| HeaderValue::try_from(value).ok());
    HeaderName::try_from(name).is_ok_and(|name| target.set_header(name, value))
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
