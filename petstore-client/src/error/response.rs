//! A response that ended a call.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Error;
use crate::wire::redact::printable;

/// The maximum number of characters of the service's text in a message.
const MAX_SHOWN: usize = 300;
/// The maximum number of bytes of a body that an error keeps.
pub(crate) const MAX_ERROR_BODY: usize = 64 * 1024;

/// A response that ended a call: not a success, or a success that cannot be decoded. From
/// [`Error::response`].
#[derive(Clone, Default)]
pub struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The Error object's `code`. The set of codes is open.
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) body: Bytes,
}

/// The specification's Error object. Each field may be missing or have another type.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    code: serde_json::Value,
    message: serde_json::Value,
}

impl ErrorResponse {
    /// Reads a response other than a success.
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

    /// Returns all headers, without the API key.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the body, at most 64 KiB, without the API key. It is empty if the response was too large.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Decodes the body from JSON, for services whose Error object has more fields.
    ///
    /// ```
    /// #[derive(serde::Deserialize)]
    /// struct Problem {
    ///     field: String,
    /// }
    ///
    /// fn show(error: &petstore_client::Error) {
    ///     if let Some(Ok(problem)) = error.response().map(|response| response.json::<Problem>()) {
    ///         println!("`{}` is wrong", problem.field);
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Decode`](crate::ErrorKind::Decode) if the body is not JSON of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|problem| {
            Error::decode::<T>(self.status, self.headers.clone(), &self.body, problem)
        })
    }

    fn is_html(&self) -> bool {
        let text = self.body.trim_ascii_start();
        let starts_with = |start: &[u8]| {
            let found = text.get(..start.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(start))
        };
        starts_with(b"<!doctype html") || starts_with(b"<html")
    }

    /// Returns what to do, unless the service's own message says it.
    pub(super) fn advice(&self) -> Option<&'static str> {
        match self.status.as_u16() {
            _ if self.message.is_some() => None,
            401 => Some("check the API key"),
            403 => Some("check what the API key is allowed to do"),
            404 => Some("check the identifier and the base URL, version segment included"),
            405 => Some("check the method and the path"),
            408 | 425 => Some("try again later"),
            410 => Some("the operation has been removed; use its replacement"),
            429 => Some("wait before the next request"),
            300..=399 => Some("redirects are not followed; check the base URL"),
            400..=499 => Some("correct the request"),
            _ => Some("try again later"),
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
            // The page of a proxy, for browsers.
            None if self.is_html() => {
                f.write_str(" with an HTML page")?;
                String::new()
            }
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
        Ok(())
    }
}

impl fmt::Debug for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            status,
            code,
            message,
            ..
        } = self;
        let mut shown = f.debug_struct("ErrorResponse");
        shown
            .field("status", status)
            .field("code", code)
            .field("message", message);
        shown.finish_non_exhaustive()
    }
}

/// Returns why a body cannot be decoded as `T`: a sentence, whether the body is JSON, and the parser's
/// error. Decodes again, because tracking the path costs time.
pub(super) fn explain_decode<T: DeserializeOwned>(
    body: &[u8],
    problem: serde_json::Error,
) -> (String, bool, String) {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let (path, cause) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(error) => (error.path().to_string(), error.into_inner()),
        // The value is valid, but something follows it.
        Ok(_) => (".".to_owned(), problem),
    };
    let path = printable(&path, 200);
    let said = printable(&cause.to_string(), MAX_SHOWN);
    let problem = if body.trim_ascii().is_empty() {
        "its body is empty where JSON was expected".to_owned()
    } else if cause.is_data() {
        format!("at `{path}`: {said}")
    } else {
        format!("its body is not JSON ({said}): `{}`", excerpt(body, 60))
    };
    (problem, cause.is_data(), said)
}

/// Returns the escaped start of a body.
fn excerpt(body: &[u8], max: usize) -> String {
    // A character has at most four bytes, so the rest is not needed.
    printable(
        &String::from_utf8_lossy(&body[..body.len().min(max * 4)]),
        max,
    )
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::cases::cases;

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<String>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| vec(inner, 0..3).prop_map(Value::from))
    }

    fn read(status: u16, body: Vec<u8>) -> ErrorResponse {
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        ErrorResponse::new(response)
    }

    proptest! {
        #![proptest_config(cases(2_000))]

        #[test]
        fn only_texts_of_an_error_are_taken_and_shown(
            code in option::of(json_value()),
            message in option::of(json_value()),
            is_rfc_9457 in any::<bool>(),
            garbage in vec(any::<u8>(), 0..40),
            status in 100..1_000_u16,
        ) {
            let mut body = json!({"status": 1});
            if let Some(code) = &code {
                body["code"] = code.clone();
            }
            // RFC 9457 has no `message`.
            if let Some(message) = &message {
                body[if is_rfc_9457 { "detail" } else { "message" }] = message.clone();
            }
            let error = read(status, body.to_string().into_bytes());
            prop_assert_eq!(error.code.as_deref(), code.as_ref().and_then(Value::as_str));
            let message = message.as_ref().filter(|_| !is_rfc_9457);
            prop_assert_eq!(error.message.as_deref(), message.and_then(Value::as_str));
            for error in [error, read(status, garbage)] {
                let shown = error.to_string();
                let is_safe = !shown.contains(char::is_control) && shown.len() < 10_000;
                prop_assert!(is_safe, "{}", shown);
            }
        }
    }
}
