//! An answer of the service that is not a success: its Error body where there is one, and what
//! can be kept of any other body.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use crate::text::printable;

/// How many characters of a body that is not an Error object are kept.
const KEPT: usize = 2_000;
/// How many characters of foreign text a message shows.
const SHOWN: usize = 300;

/// A response with a status that is not a success.
#[derive(Debug)]
pub(crate) struct ServiceFault {
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
struct Wire {
    #[serde(default)]
    code: serde_json::Value,
    #[serde(default)]
    message: serde_json::Value,
}

impl ServiceFault {
    pub(crate) fn new(status: StatusCode, headers: HeaderMap, body: &Bytes) -> Self {
        let text = |value: serde_json::Value| value.as_str().map(str::to_owned);
        let (code, message) = match serde_json::from_slice::<Wire>(body) {
            Ok(wire) => (text(wire.code), text(wire.message)),
            Err(_) => (None, None),
        };
        // A character takes at most four bytes: no need to look at the rest of a huge page.
        let head = &body[..body.len().min(KEPT * 4)];
        Self {
            status,
            headers,
            code,
            message,
            body: printable(&String::from_utf8_lossy(head), KEPT),
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

impl fmt::Display for ServiceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the service answered {}", self.status.as_u16())?;
        if let Some(reason) = self.status.canonical_reason() {
            write!(f, " {reason}")?;
        }
        if let Some(code) = &self.code {
            write!(f, " ({})", printable(code, SHOWN))?;
        }
        let said = match &self.message {
            Some(message) => printable(message, SHOWN),
            None => printable(&self.body, SHOWN),
        };
        if !said.is_empty() {
            write!(f, ": {said}")?;
        }
        if self.status.is_redirection()
            && let Some(target) = self.headers.get(header::LOCATION)
        {
            let target = String::from_utf8_lossy(target.as_bytes());
            write!(f, "; it points to {}", printable(&target, SHOWN))?;
        }
        write!(f, "; {}", self.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(status: u16, body: &'static str) -> ServiceFault {
        ServiceFault::new(
            StatusCode::from_u16(status).unwrap(),
            HeaderMap::new(),
            &Bytes::from_static(body.as_bytes()),
        )
    }

    #[test]
    fn reads_the_services_error_object() {
        let fault = fault(404, r#"{"code":"pet_not_found","message":"no pet 9","status":404}"#);
        assert_eq!(fault.code.as_deref(), Some("pet_not_found"));
        assert_eq!(
            fault.to_string(),
            "the service answered 404 Not Found (pet_not_found): no pet 9; \
             check the identifier and the base URL, version segment included"
        );
    }

    #[test]
    fn keeps_a_body_that_is_not_json_and_makes_it_printable() {
        let fault = fault(502, "<html>\u{1b}[31mBad Gateway</html>");
        assert_eq!(fault.code, None);
        assert_eq!(fault.body, "<html>\\u{1b}[31mBad Gateway</html>");
    }

    #[test]
    fn survives_an_error_object_of_other_types() {
        let fault = fault(400, r#"{"code":7,"message":["x"]}"#);
        assert_eq!((fault.code, fault.message), (None, None));
    }
}
