//! Status: another status than the service's, with the Error shape or without a body.

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, DATE},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    answer::{Act, Answer},
    rate_headers,
};

/// Takes the place of the whole answer; what every response has, it keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Status {
    pub(super) status: Code,
    /// The `code` of the Error shape; from the status unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<String>,
    /// Whether there is a body in the Error shape.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub(super) body: bool,
}

/// A status that can end an exchange: from 200 to 599.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub(super) struct Code(StatusCode);

impl TryFrom<u16> for Code {
    type Error = &'static str;

    fn try_from(status: u16) -> Result<Self, Self::Error> {
        let status = StatusCode::from_u16(status).ok().filter(|_| (200..600).contains(&status));
        status.map(Self).ok_or("the status of an answer is from 200 to 599")
    }
}

impl From<Code> for u16 {
    fn from(Code(status): Code) -> Self {
        status.as_u16()
    }
}

impl Status {
    pub(super) fn new(status: Code) -> Self {
        Self { status, code: None, body: true }
    }

    pub(super) fn unavailable() -> Self {
        Self::new(Code(StatusCode::SERVICE_UNAVAILABLE))
    }

    fn text(&self) -> String {
        let status = self.status.0;
        let reason = status.canonical_reason().unwrap_or("injected fault");
        let code = reason.to_lowercase().replace([' ', '-'], "_");
        let code = self.code.as_ref().unwrap_or(&code);
        let message = "a fault that was set in this mock answers instead of the service";
        json!({ "code": code, "message": message, "status": status.as_u16() }).to_string()
    }
}

impl Act for Status {
    fn act(&self, answer: &mut Answer) -> bool {
        answer.status = self.status.0;
        let mut headers = HeaderMap::new();
        let keep = |name: HeaderName| answer.headers.remove(&name).map(|value| (name, value));
        let [limit, remaining, reset] = rate_headers::NAMES;
        headers.extend([DATE, limit, remaining, reset].into_iter().filter_map(keep));
        answer.headers = headers;
        let has_none =
            [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED];
        if self.body && !has_none.contains(&self.status.0) {
            answer.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            answer.set_body(self.text());
        } else {
            answer.set_body("");
        }
        true
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it like this")]
fn is_true(flag: &bool) -> bool {
    *flag
}
