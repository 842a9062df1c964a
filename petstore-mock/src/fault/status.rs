//! An effect that replaces the response by a status.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::change::is_bodiless;

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
        if self.body && !is_bodiless(status) {
            let error = json!({
                "code": self.code.clone().unwrap_or_else(|| usual_code(status)),
                "message": "injected by petstore-mock",
                "status": self.status,
            });
            *response.body_mut() = error.to_string().into();
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
        }
        response
    }
}

fn usual_code(status: StatusCode) -> String {
    if status == StatusCode::TOO_MANY_REQUESTS {
        return "rate_limit_exceeded".to_owned();
    }
    let reason = status.canonical_reason().unwrap_or("injected fault");
    reason.to_lowercase().replace([' ', '-'], "_")
}
