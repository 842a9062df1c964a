//! A response that ended a call.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::redact::printable;

/// How many characters of foreign text a message shows.
const MAX_SHOWN: usize = 300;
/// How many bytes of a body an error keeps.
pub(crate) const MAX_ERROR_BODY: usize = 64 * 1024;

/// A response that ended a call: not a success, or a success that cannot be read.
#[derive(Clone, Default)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The Error object's `code`: an open set, never matched against a list.
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) body: Bytes,
}

/// The specification's Error, of which each part may be missing or of another type.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    code: serde_json::Value,
    message: serde_json::Value,
}

impl ErrorResponse {
    /// Reads a response that is not a success.
    pub(crate) fn new(response: Response<Bytes>) -> Self {
        let (head, body) = response.into_parts();
        let error: ErrorBody = serde_json::from_slice(&body).unwrap_or_default();
        Self {
            status: head.status,
            headers: head.headers,
            code: error.code.as_str().map(str::to_owned),
            message: error.message.as_str().map(str::to_owned),
            body,
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
        // A message of the service says what to do.
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

/// Returns why a body cannot be read as `T`: where in it, the problem as a sentence, and the parser's
/// own words. Only now is the path tracked, which takes time.
pub(super) fn explain_decode<T: DeserializeOwned>(
    body: &[u8],
    problem: serde_json::Error,
) -> (String, String, String) {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let (path, cause) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(error) => (error.path().to_string(), error.into_inner()),
        // The value is right, and something follows it.
        Ok(_) => (".".to_owned(), problem),
    };
    let path = printable(&path, 200);
    let said = printable(&cause.to_string(), MAX_SHOWN);
    let problem = if body.trim_ascii().is_empty() {
        "its body is empty where JSON was expected; check the base URL".to_owned()
    } else if cause.is_data() {
        format!("at `{path}`: {said}")
    } else {
        format!("its body is not JSON ({said}): `{}`; check the base URL", excerpt(body, 60))
    };
    (path, problem, said)
}

/// Returns the start of a body, made printable.
fn excerpt(body: &[u8], max: usize) -> String {
    // A character takes at most four bytes: no need to look at the rest.
    printable(&String::from_utf8_lossy(&body[..body.len().min(max * 4)]), max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Pet;

    fn response(status: u16, body: &'static str) -> ErrorResponse {
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

    fn problem(body: &str) -> (String, String) {
        let plain = serde_json::from_str::<Vec<Pet>>(body).unwrap_err();
        let (path, problem, _) = explain_decode::<Vec<Pet>>(body.as_bytes(), plain);
        (path, problem)
    }

    #[test]
    fn says_where_in_the_json_decoding_failed() {
        let pets = r#"[{"id":1,"name":"a","categoryId":1},{"id":2,"name":"b","categoryId":"x"}]"#;
        let (path, message) = problem(pets);
        assert_eq!(path, "[1].categoryId");
        assert!(message.contains("expected i64"), "{message}");
    }

    #[test]
    fn shows_the_head_of_a_body_that_is_not_json() {
        let (_, message) = problem("<html>\u{1b}[0m</html>");
        assert!(message.contains("`<html>\\u{1b}[0m</html>`"), "{message}");
        assert!(problem("[] []").1.contains("not JSON (trailing characters"));
        assert!(problem("").1.contains("its body is empty"));
    }
}
