//! A response that ended a call: what it said, and where its body could not be read.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde::Deserialize;

use crate::redact::printable;

/// How many characters of foreign text a message shows.
pub(super) const MAX_SHOWN: usize = 300;
/// How many bytes of a body an error keeps.
pub(crate) const MAX_ERROR_BODY: usize = 64 * 1024;

/// A response that ended a call: one that is no success, or a success that cannot be read.
#[derive(Clone)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The Error object's `code`: an open set, never matched against a list.
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) body: Bytes,
}

/// The specification's Error, read as leniently as it can be.
#[derive(Deserialize)]
struct ErrorBody {
    #[serde(default)]
    code: serde_json::Value,
    #[serde(default)]
    message: serde_json::Value,
}

impl ErrorResponse {
    /// Reads a response that is no success.
    pub(crate) fn new(response: Response<Bytes>) -> Box<Self> {
        let (head, body) = response.into_parts();
        let text = |value: serde_json::Value| value.as_str().map(str::to_owned);
        let (code, message) = match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => (text(body.code), text(body.message)),
            Err(_) => (None, None),
        };
        let (status, headers) = (head.status, head.headers);
        Box::new(Self { status, headers, code, message, body })
    }

    /// Keeps a success whose body cannot be read.
    pub(crate) fn unread(status: StatusCode, headers: HeaderMap, body: &Bytes) -> Box<Self> {
        let body = body.slice(..body.len().min(MAX_ERROR_BODY));
        Box::new(Self { status, headers, code: None, message: None, body })
    }

    fn advice(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "check the API key",
            403 => "check what the API key is allowed to do",
            404 => "check the identifier and the base URL, version segment included",
            405 => "check the method and the path",
            408 => "try again later",
            410 => "the operation has been removed; use its replacement",
            429 => "wait before the next request",
            300..=399 => "redirects are not followed; check the base URL",
            400..=499 => "correct the request",
            _ => "try again later",
        }
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the service answered {}", self.status.as_u16())?;
        if let Some(reason) = self.status.canonical_reason() {
            write!(f, " {reason}")?;
        }
        if let Some(code) = &self.code {
            write!(f, " ({})", printable(code, MAX_SHOWN))?;
        }
        let text = match &self.message {
            Some(message) => printable(message, MAX_SHOWN),
            None => excerpt(&self.body, MAX_SHOWN),
        };
        if !text.is_empty() {
            write!(f, ": {text}")?;
        }
        if self.status.is_redirection()
            && let Some(target) = self.headers.get(header::LOCATION)
        {
            let target = String::from_utf8_lossy(target.as_bytes());
            write!(f, "; it points to {}", printable(&target, MAX_SHOWN))?;
        }
        // A service that explains itself says what to do as well.
        match self.message {
            Some(_) => Ok(()),
            None => write!(f, "; {}", self.advice()),
        }
    }
}

impl fmt::Debug for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, code, message, .. } = self;
        let mut shown = f.debug_struct("ErrorResponse");
        shown.field("status", status).field("code", code).field("message", message);
        shown.finish_non_exhaustive()
    }
}

/// Returns the head of a body, made printable.
pub(super) fn excerpt(body: &[u8], max: usize) -> String {
    // A character takes at most four bytes: no need to look at the rest.
    printable(&String::from_utf8_lossy(&body[..body.len().min(max * 4)]), max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &'static str) -> Box<ErrorResponse> {
        let mut response = Response::new(body.into());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        ErrorResponse::new(response)
    }

    #[test]
    fn reads_the_services_error_object() {
        let response =
            response(404, r#"{"code":"pet_not_found","message":"no pet 9","status":404}"#);
        assert_eq!(response.code.as_deref(), Some("pet_not_found"));
        assert_eq!(
            response.to_string(),
            "the service answered 404 Not Found (pet_not_found): no pet 9"
        );
    }

    #[test]
    fn shows_a_body_that_is_not_json_without_what_acts_on_a_terminal() {
        let response = response(502, "<html>\u{1b}[31mBad Gateway</html>");
        assert_eq!(response.code, None);
        let expected = "Bad Gateway: <html>\\u{1b}[31mBad Gateway</html>; try again later";
        assert!(response.to_string().ends_with(expected), "{response}");
    }

    #[test]
    fn survives_an_error_object_of_other_types() {
        let response = response(400, r#"{"code":7,"message":["x"]}"#);
        assert_eq!((response.code, response.message), (None, None));
    }
}
