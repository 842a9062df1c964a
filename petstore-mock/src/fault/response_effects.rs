//! Effects on a response: status, headers and body.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, RETRY_AFTER},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::socket_effects::{EarlyEnd, EndMode, Pace, SocketPlan};
use crate::clock::{END, seconds_until};

/// The headers that the specification promises on every response.
const RATE_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];

/// The statuses without a body.
const BODILESS: [StatusCode; 3] = [
    StatusCode::NO_CONTENT,
    StatusCode::RESET_CONTENT,
    StatusCode::NOT_MODIFIED,
];

/// Invalid numbers. A lenient parser might accept the first two.
const GARBAGE: [HeaderValue; 3] = [
    HeaderValue::from_static("1e999"),
    HeaderValue::from_static("-1"),
    HeaderValue::from_static("tomorrow"),
];

/// The response that faults change. The methods return false if there was nothing to change.
#[derive(Debug)]
pub(super) struct FaultTarget<'r> {
    response: &'r mut Response<Bytes>,
    /// Whether the request was HEAD, so that there is no body.
    is_head: bool,
    /// The mock's time, since the Unix epoch.
    now: Duration,
    /// The effects on the socket.
    plan: SocketPlan,
}

impl<'r> FaultTarget<'r> {
    pub(super) fn new(response: &'r mut Response<Bytes>, now: Duration, is_head: bool) -> Self {
        Self {
            response,
            is_head,
            now,
            plan: SocketPlan::default(),
        }
    }

    /// Returns the effects on the socket.
    pub(super) fn into_plan(self) -> SocketPlan {
        self.plan
    }

    /// Replaces the whole response.
    pub(super) fn set_status(&mut self, status: &StatusEffect) -> bool {
        status.replace(self.response);
        if self.response.status() == StatusCode::TOO_MANY_REQUESTS {
            self.exhaust();
        }
        true
    }

    /// Adds the headers of an exhausted quota, as the mock's own 429 has them.
    fn exhaust(&mut self) {
        let [_, remaining, reset] = RATE_HEADERS;
        let headers = self.response.headers_mut();
        headers.insert(remaining, HeaderValue::from(0));
        let reset = headers
            .get(reset)
            .and_then(|it| it.to_str().ok()?.parse().ok());
        let reset = Duration::from_secs(reset.unwrap_or_default());
        let wait = seconds_until(reset, self.now);
        headers.insert(RETRY_AFTER, HeaderValue::from(wait));
    }

    /// Sets a header, or removes it.
    pub(super) fn set_header(&mut self, name: HeaderName, value: Option<HeaderValue>) -> bool {
        let headers = self.response.headers_mut();
        match value {
            Some(value) => {
                headers.insert(name, value);
                true
            }
            None => headers.remove(name).is_some(),
        }
    }

    /// Replaces the body, if there is one. The server recomputes its length.
    pub(super) fn set_body(&mut self, body: impl Into<Bytes>) -> bool {
        let has_body = !self.is_head && !BODILESS.contains(&self.response.status());
        if has_body {
            self.response.headers_mut().remove(CONTENT_LENGTH);
            *self.response.body_mut() = body.into();
        }
        has_body
    }

    /// Ends the response before its status line, or inside its body, if that is longer than this.
    pub(super) fn end(&mut self, after_body_bytes: Option<u64>, how: EndMode) -> bool {
        let length = self.response.body().len() as u64;
        let is_possible = after_body_bytes.is_none_or(|bytes| bytes < length);
        is_possible
            && self.plan.set_end(EarlyEnd {
                after_body_bytes,
                how,
            })
    }

    /// Sets the speed of the response.
    pub(super) fn set_pace(&mut self, pace: Pace) -> bool {
        self.plan.set_pace(pace)
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
                return RATE_HEADERS
                    .map(|name| target.set_header(name, None))
                    .contains(&true);
            }
            Self::Garbage => GARBAGE.map(Some),
            Self::Wrong {
                limit,
                remaining,
                reset,
            } => [limit, remaining, reset].map(|number| number.map(HeaderValue::from)),
        };
        let given = RATE_HEADERS
            .into_iter()
            .zip(values)
            .filter(|(_, value)| value.is_some());
        given
            .map(|(name, value)| target.set_header(name, value))
            .fold(false, |any, one| any | one)
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
        let now = target.now;
        let at = |seconds: &u64| now.saturating_add(Duration::from_secs(*seconds));
        let value = match self {
            Self::Missing => None,
            Self::Seconds(seconds) => Some(HeaderValue::from(*seconds)),
            Self::HttpDate(seconds) => http_date(at(seconds), imf_fixdate),
            Self::Rfc850(seconds) => http_date(at(seconds), rfc_850),
            Self::Asctime(seconds) => http_date(at(seconds), asctime),
            Self::Epoch(seconds) => Some(HeaderValue::from(at(seconds).as_secs())),
            Self::Text(text) => {
                let fit = |byte: u8| {
                    if byte < b' ' || byte == 0x7f {
                        b'?'
                    } else {
                        byte
                    }
                };
                HeaderValue::from_bytes(&text.bytes().map(fit).collect::<Vec<u8>>()).ok()
            }
        };
        target.set_header(RETRY_AFTER, value)
    }
}

/// Formats a time since the Unix epoch, up to the year 9999.
fn http_date(at: Duration, form: fn([&str; 5]) -> String) -> Option<HeaderValue> {
    let date = httpdate::fmt_http_date(UNIX_EPOCH.checked_add(at.min(END))?);
    // "Thu, 01 Jan 2026 00:00:40 GMT": each part has fixed columns.
    let parts = [0..3, 5..7, 8..11, 12..16, 17..25].map(|at| date.get(at).unwrap_or_default());
    HeaderValue::try_from(form(parts)).ok()
}

fn imf_fixdate([weekday, day, month, year, time]: [&str; 5]) -> String {
    format!("{weekday}, {day} {month} {year} {time} GMT")
}

fn rfc_850([weekday, day, month, year, time]: [&str; 5]) -> String {
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

fn asctime([weekday, day, month, year, time]: [&str; 5]) -> String {
    let day = day.trim_start_matches('0');
    format!("{weekday} {month} {day:>2} {time} {year}")
}

/// A status that replaces the whole response, except for the common headers: see
/// [`Effect::status`](crate::Effect::status).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StatusForm")]
pub struct StatusEffect {
    /// From 200 to 599: a final status.
    status: u16,
    /// The `code` of the Error object; derived from the status by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Whether the body is an Error object.
    #[serde(skip_serializing_if = "Clone::clone")]
    body: bool,
}

/// The JSON forms of a status.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
#[serde(expecting = "expected a status such as 503, or \
                     {\"status\": 503, \"code\": \"busy\", \"body\": false}")]
enum StatusForm {
    Number(u64),
    Object {
        status: u64,
        code: Option<String>,
        body: Option<bool>,
    },
}

impl TryFrom<StatusForm> for StatusEffect {
    type Error = &'static str;

    fn try_from(form: StatusForm) -> Result<Self, Self::Error> {
        let (status, code, body) = match form {
            StatusForm::Number(status) => (status, None, None),
            StatusForm::Object { status, code, body } => (status, code, body),
        };
        let status = u16::try_from(status)
            .ok()
            .filter(|status| (200..600).contains(status));
        let status = status.ok_or("the status of a response is from 200 to 599")?;
        Ok(Self {
            status,
            code,
            body: body.unwrap_or(true),
        })
    }
}

impl StatusEffect {
    /// Creates a response with this status, and with an Error object if `body` is set.
    ///
    /// # Panics
    ///
    /// If the status is not from 200 to 599.
    #[track_caller]
    pub(super) fn new(status: u16, body: bool) -> Self {
        assert!(
            (200..600).contains(&status),
            "the status of a response is from 200 to 599"
        );
        Self {
            status,
            code: None,
            body,
        }
    }

    pub(super) fn to_response(&self) -> Response<Bytes> {
        let status = StatusCode::from_u16(self.status).unwrap_or_default();
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = status;
        if self.body && !BODILESS.contains(&status) {
            let code = || match status {
                StatusCode::TOO_MANY_REQUESTS => "rate_limit_exceeded".to_owned(),
                _ => {
                    let reason = status.canonical_reason().unwrap_or("injected fault");
                    reason.to_lowercase().replace([' ', '-'], "_")
                }
            };
            let error = json!({
                "code": self.code.clone().unwrap_or_else(code),
                "message": "injected by petstore-mock",
                "status": self.status,
            });
            *response.body_mut() = error.to_string().into();
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
        }
        response
    }

    /// Replaces a response, except for its date and its rate headers.
    pub(super) fn replace(&self, old: &mut Response<Bytes>) {
        let mut response = self.to_response();
        for name in RATE_HEADERS.into_iter().chain([DATE]) {
            if let Some(value) = old.headers_mut().remove(&name) {
                response.headers_mut().insert(name, value);
            }
        }
        *old = response;
    }
}

#[cfg(test)]
mod tests {
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
