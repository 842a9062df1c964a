//! A response that is no success: its Error body where there is one, and what can be kept of any
//! other body.

use std::fmt;

use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use crate::http::transport::RawResponse;
use crate::redact::printable;

/// How many characters of a body that is not an Error object are kept.
const MAX_BODY: usize = 2_000;
/// How many characters of foreign text a message shows.
const MAX_SHOWN: usize = 300;

/// A response with a status that is not a success.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The Error object's `code`: an open set, never matched against a list.
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    /// The body, cut and made printable.
    pub(crate) body: String,
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
    pub(crate) fn new(response: RawResponse) -> Self {
        let RawResponse { status, headers, body } = response;
        let text = |value: serde_json::Value| value.as_str().map(str::to_owned);
        let (code, message) = match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => (text(body.code), text(body.message)),
            Err(_) => (None, None),
        };
        // A character takes at most four bytes: no need to look at the rest of a huge page.
        let head = &body[..body.len().min(MAX_BODY * 4)];
        Self {
            status,
            headers,
            code,
            message,
            body: printable(&String::from_utf8_lossy(head), MAX_BODY),
        }
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
        let text = self.message.as_deref().unwrap_or(&self.body);
        let text = printable(text, MAX_SHOWN);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &'static str) -> ErrorResponse {
        let status = StatusCode::from_u16(status).unwrap();
        ErrorResponse::new(RawResponse { status, headers: HeaderMap::new(), body: body.into() })
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
    fn keeps_a_body_that_is_not_json_and_makes_it_printable() {
        let response = response(502, "<html>\u{1b}[31mBad Gateway</html>");
        assert_eq!(response.code, None);
        assert_eq!(response.body, "<html>\\u{1b}[31mBad Gateway</html>");
        assert!(response.to_string().ends_with("</html>; try again later"), "{response}");
    }

    #[test]
    fn survives_an_error_object_of_other_types() {
        let response = response(400, r#"{"code":7,"message":["x"]}"#);
        assert_eq!((response.code, response.message), (None, None));
    }
}
