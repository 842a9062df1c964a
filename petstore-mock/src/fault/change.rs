//! Changes a response: its status, headers and body, its speed, and where it ends.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CONTENT_LENGTH, CONTENT_TYPE,
        DATE, RETRY_AFTER, TRANSFER_ENCODING,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    clock::{instant, seconds_until},
    operation::RATE_HEADERS,
};

/// Whether a response with this status has no body.
fn is_bodiless(status: StatusCode) -> bool {
    matches!(status.as_u16(), 204 | 205 | 304)
}

/// Returns a response with this status, and with an Error object unless it has no body.
pub(crate) fn injected(status: u16) -> Response<Bytes> {
    // A fault with another status is refused.
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    if !is_bodiless(status) {
        let error = json!({
            "code": usual_code(status),
            "message": "injected by petstore-mock",
            "status": status.as_u16(),
        });
        *response.body_mut() = error.to_string().into();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
    }
    response
}

fn usual_code(status: StatusCode) -> String {
    if status == StatusCode::TOO_MANY_REQUESTS {
        return "rate_limit_exceeded".to_owned();
    }
    let reason = status.canonical_reason().unwrap_or("injected fault");
    reason.to_lowercase().replace([' ', '-'], "_")
}

/// The response that faults change. The methods return false if there was nothing to change.
pub(super) struct FaultTarget<'r> {
    response: &'r mut Response<Bytes>,
    /// Whether the request was HEAD, whose response has no body.
    is_head: bool,
    /// The mock's time, since the Unix epoch.
    now: Duration,
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
    pub(super) fn plan(&self) -> SocketPlan {
        self.plan
    }

    /// Replaces the whole response, except for its date, its rate headers and those for pages. A 429
    /// gets the headers of an exhausted quota, as the mock's own has them.
    pub(super) fn replace(&mut self, status: u16) -> bool {
        let mut response = injected(status);
        let kept = [
            DATE,
            ACCESS_CONTROL_ALLOW_ORIGIN,
            ACCESS_CONTROL_EXPOSE_HEADERS,
        ];
        for name in RATE_HEADERS.into_iter().chain(kept) {
            if let Some(value) = self.response.headers_mut().remove(&name) {
                response.headers_mut().insert(name, value);
            }
        }
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            let [_, remaining, reset] = RATE_HEADERS;
            let headers = response.headers_mut();
            let reset = headers
                .get(reset)
                .and_then(|it| it.to_str().ok()?.parse().ok());
            let reset = Duration::from_secs(reset.unwrap_or_default());
            headers.insert(remaining, HeaderValue::from(0));
            headers.insert(RETRY_AFTER, seconds_until(reset, self.now).into());
        }
        *self.response = response;
        true
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
    pub(super) fn set_body(&mut self, body: &str) -> bool {
        let has_body = !self.is_head && !is_bodiless(self.response.status());
        if has_body {
            self.response.headers_mut().remove(CONTENT_LENGTH);
            *self.response.body_mut() = body.to_owned().into();
        }
        has_body
    }

    /// Ends the response before its status line, or inside its body, if that is longer than this.
    pub(super) fn end(&mut self, after_body_bytes: Option<u64>, how: EndMode) -> bool {
        let length = self.response.body().len() as u64;
        let is_within = after_body_bytes.is_none_or(|bytes| bytes < length);
        if self.plan.end.is_some() || !is_within {
            return false;
        }
        self.plan.end = Some(EarlyEnd {
            after_body_bytes,
            how,
        });
        true
    }

    /// Sets the speed of the response.
    pub(super) fn set_pace(&mut self, pace: Pace) -> bool {
        if self.plan.pace.is_some() {
            return false;
        }
        self.plan.pace = Some(pace);
        true
    }
}

/// Returns why a fault must not set this header field.
pub(super) fn problem_of_header(name: &str, value: Option<&str>) -> Option<&'static str> {
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
pub(super) fn set_header(target: &mut FaultTarget<'_>, name: &str, value: Option<&str>) -> bool {
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
                let at = target.now.saturating_add(Duration::from_secs(seconds));
                httpdate::fmt_http_date(instant(at))
            }
        };
        HeaderValue::try_from(text).is_ok_and(|value| target.set_header(RETRY_AFTER, Some(value)))
    }
}

/// The socket effects of a response; none by default. Of several faults, the first one counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SocketPlan {
    pace: Option<Pace>,
    end: Option<EarlyEnd>,
}

impl SocketPlan {
    pub(crate) fn pace(&self) -> Option<Pace> {
        self.pace
    }

    pub(crate) fn end(&self) -> Option<EarlyEnd> {
        self.end
    }
}

/// A premature end of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyEnd {
    /// The number of sent bytes of the body, which is longer; `None` before the status line.
    pub(crate) after_body_bytes: Option<u64>,
    pub(crate) how: EndMode,
}

/// How a response ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndMode {
    /// The connection is reset: the client sees ECONNRESET.
    Reset,
    /// The connection is closed: the client sees the end of the stream.
    Close,
    /// Nothing more is sent.
    Hang,
}

/// The speed of a response, including its head: a number of bytes at intervals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// At least 1.
    bytes: u32,
    every: Duration,
}

impl Pace {
    /// Sends the first `bytes` immediately, and as many again after each interval.
    pub(super) fn new(bytes: u32, every: Duration) -> Self {
        let bytes = bytes.max(1);
        Self { bytes, every }
    }

    /// Returns the number of bytes that may have been sent after `elapsed`.
    pub(crate) fn allowed(&self, elapsed: Duration) -> u64 {
        let steps = elapsed.as_nanos().checked_div(self.every.as_nanos());
        let steps = u64::try_from(steps.unwrap_or(u128::MAX)).unwrap_or(u64::MAX);
        steps.saturating_add(1).saturating_mul(self.bytes.into())
    }

    /// Returns when the byte after the first `sent` bytes is due, as a time since the start.
    pub(crate) fn due(&self, sent: u64) -> Duration {
        let steps = sent / u64::from(self.bytes);
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.every.saturating_mul(steps)
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn each_pause_lets_as_many_bytes_go_as_the_first_moment() {
        let every = Duration::from_secs(2);
        let pace = Pace::new(10, every);
        let allowed = [0, 1_999, 2_000, 4_000].map(|ms| pace.allowed(Duration::from_millis(ms)));
        assert_eq!(allowed, [10, 10, 20, 30]);
        let due = [0, 9, 10, 19, 20].map(|sent| pace.due(sent).as_secs());
        assert_eq!(due, [0, 0, 2, 2, 4]);
    }
}
