//! Changes a response.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, RETRY_AFTER},
};
use serde_json::json;

use super::socket_effects::{EarlyEnd, EndMode, Pace, SocketPlan};
use crate::{clock::seconds_until, operation::RATE_HEADERS};

/// Whether a response with this status has no body.
fn is_bodiless(status: StatusCode) -> bool {
    matches!(status.as_u16(), 204 | 205 | 304)
}

/// Returns a response with this status, and with an Error object unless it has no body.
pub(super) fn injected(status: u16) -> Response<Bytes> {
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
#[derive(Debug)]
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

    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// Returns the effects on the socket.
    pub(super) fn plan(&self) -> SocketPlan {
        self.plan
    }

    /// Replaces the whole response, except for its date and its rate headers. A 429 gets the headers
    /// of an exhausted quota, as the mock's own has them.
    pub(super) fn replace(&mut self, status: u16) -> bool {
        let mut response = injected(status);
        for name in RATE_HEADERS.into_iter().chain([DATE]) {
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
        after_body_bytes.is_none_or(|bytes| bytes < length)
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
