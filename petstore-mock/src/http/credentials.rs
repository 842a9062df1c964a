//! The API key of a request, and what is wrong with how it was sent: for the 401, and for the compliance
//! report.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderValue, Request, header::AUTHORIZATION};
use percent_encoding::percent_decode_str;

use super::error::ApiError;
use crate::{exchange::KeyFlaw, state::AppState};

/// The challenge of RFC 6750, section 3, to a request without a key.
const CHALLENGE: &str = "Bearer realm=\"petstore\"";
/// The same to a request with a bad key.
const INVALID_TOKEN: &str = "Bearer realm=\"petstore\", error=\"invalid_token\"";

/// What is wrong with the key of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CredentialError {
    Missing,
    Repeated,
    NotBearer,
    Empty,
    /// Spaces, or bytes beyond ASCII.
    Malformed,
    Unknown,
}

impl From<CredentialError> for ApiError {
    /// No message repeats what was sent: it may be a key after all.
    fn from(error: CredentialError) -> Self {
        match error {
            CredentialError::Missing => Self::unauthorized(
                "the API key is missing: send it as `Authorization: Bearer KEY`",
                CHALLENGE,
            ),
            CredentialError::Repeated => Self::unauthorized(
                "there is more than one Authorization header: send exactly one",
                CHALLENGE,
            ),
            CredentialError::NotBearer => Self::unauthorized(
                "the Authorization header has another scheme: send `Authorization: Bearer KEY`",
                CHALLENGE,
            ),
            CredentialError::Empty => Self::unauthorized(
                "the API key is empty: send it after `Authorization: Bearer `",
                CHALLENGE,
            ),
            CredentialError::Malformed => Self::unauthorized(
                "the API key holds a space or a character beyond ASCII, which no key does",
                INVALID_TOKEN,
            ),
            CredentialError::Unknown => Self::unauthorized(
                "the API key is not known: check it for a typing error, or give it to the mock \
                 with --key KEY=PLAN",
                INVALID_TOKEN,
            ),
        }
    }
}

/// Returns the key that a request was sent with.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, CredentialError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(CredentialError::Missing)?;
    if values.next().is_some() {
        return Err(CredentialError::Repeated);
    }
    let bytes = value.as_bytes();
    let (scheme, rest) = match bytes.iter().position(|byte| *byte == b' ') {
        Some(space) => bytes.split_at(space),
        None => (bytes, &b""[..]),
    };
    if scheme.is_empty() {
        return Err(CredentialError::Missing);
    }
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(CredentialError::NotBearer);
    }
    let token = rest.trim_ascii();
    if token.is_empty() {
        return Err(CredentialError::Empty);
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err(CredentialError::Malformed);
    }
    // All of it is ASCII, so this can't fail.
    std::str::from_utf8(token).map_err(|_| CredentialError::Malformed)
}

/// Query parameters that hold keys, whatever their value.
const NAMES: [&str; 4] = ["api_key", "apikey", "api-key", "access_token"];

/// Returns what is wrong with how a key was sent, if anything is.
pub(crate) fn key_flaw<B>(
    request: &Request<B>,
    wrong: Option<CredentialError>,
    app: &AppState,
) -> Option<KeyFlaw> {
    let holds_key = |text: &str| app.holds_key(text);
    let uri = request.uri();
    if let Some(parameter) = uri.query().and_then(|query| in_query(query, holds_key)) {
        return Some(KeyFlaw::InUrl(parameter));
    }
    // The paths of the service hold no key, unless one is called like them.
    let mut segments = uri.path().split('/').filter(|segment| !segment.is_empty());
    if segments.any(|segment| !is_ours(segment) && holds_key(&decoded(segment))) {
        return Some(KeyFlaw::InUrl("".into()));
    }
    let is_other = matches!(wrong, Some(CredentialError::NotBearer | CredentialError::Missing))
        && has_other_credentials(request.headers(), |key| app.has_key(key));
    is_other.then_some(KeyFlaw::OtherScheme)
}

fn is_ours(segment: &str) -> bool {
    matches!(segment, "v1" | "pets" | "store" | "orders")
}

/// Returns the name of the first query parameter that holds a key.
fn in_query(query: &str, holds_key: impl Fn(&str) -> bool) -> Option<Box<str>> {
    query.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name);
        let is_named = NAMES.iter().any(|one| one.eq_ignore_ascii_case(&name));
        let is_found = !value.is_empty() && (is_named || holds_key(&decoded(value)));
        is_found.then(|| name.into())
    })
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Whether a valid key was sent otherwise than as a bearer token: with another scheme or none, or in
/// `X-Api-Key`.
fn has_other_credentials(headers: &HeaderMap, is_key: impl Fn(&str) -> bool) -> bool {
    let text = |value: &HeaderValue| value.to_str().map(str::to_owned).ok();
    let authorization = headers.get(AUTHORIZATION).and_then(text);
    let api_key = headers.get("x-api-key").and_then(text);
    let token = authorization.as_deref().and_then(|value| value.split_ascii_whitespace().last());
    let basic = token.and_then(|token| BASE64_STANDARD.decode(token).ok());
    let basic = basic.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let parts = basic.split(':').chain(token).chain(api_key.as_deref());
    parts.into_iter().any(is_key)
}

/// Returns a number that differs where unknown credentials do.
pub(crate) fn credentials(headers: &HeaderMap, wrong: Option<CredentialError>) -> u64 {
    if wrong.is_none() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    headers.get_all(AUTHORIZATION).iter().for_each(|value| value.as_bytes().hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_keys_and_what_is_called_one() {
        let is_key = |text: &str| text == "free-key";
        for (query, name) in [
            ("a=free-key", "a"),
            ("limit=5&x=free%2dkey", "x"),
            ("API_KEY=x", "API_KEY"),
            ("access_token=1&limit=5", "access_token"),
        ] {
            assert_eq!(in_query(query, is_key).as_deref(), Some(name), "{query}");
        }
        for query in ["", "limit=5", "token=1", "api_key=", "free-key", "a=free-key2", "a=%ff"] {
            assert_eq!(in_query(query, is_key), None, "{query}");
        }
    }

    #[test]
    fn finds_a_valid_key_that_is_no_bearer_token() {
        let other = |name: &'static str, value: &str| {
            let headers = HeaderMap::from_iter([(
                name.parse::<http::HeaderName>().unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )]);
            has_other_credentials(&headers, |key| key == "free-key")
        };
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        assert!(other("authorization", "free-key") && other("authorization", "Token free-key"));
        assert!(other("x-api-key", "free-key") && other("authorization", &basic("free-key:")));
        assert!(other("authorization", &basic("me:free-key")));
        assert!(!other("authorization", "Basic abc") && !other("x-api-key", "nonsense"));
    }

    fn of(values: &[&'static [u8]]) -> Result<String, CredentialError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer(&headers).map(str::to_owned)
    }

    #[test]
    fn finds_the_key_whatever_the_case_of_the_scheme() {
        for value in [&b"Bearer k=1/2"[..], b"bearer k=1/2", b"BEARER   k=1/2"] {
            assert_eq!(of(&[value]).as_deref(), Ok("k=1/2"));
        }
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(of(&[]), Err(CredentialError::Missing));
        assert_eq!(of(&[b""]), Err(CredentialError::Missing));
        assert_eq!(of(&[b"Bearer a", b"Bearer a"]), Err(CredentialError::Repeated));
        assert_eq!(of(&[b"Basic abc"]), Err(CredentialError::NotBearer));
        assert_eq!(of(&[b"free-key"]), Err(CredentialError::NotBearer));
        assert_eq!(of(&[b"Bearer"]), Err(CredentialError::Empty));
        assert_eq!(of(&[b"Bearer  "]), Err(CredentialError::Empty));
        assert_eq!(of(&[b"Bearer a b"]), Err(CredentialError::Malformed));
        assert_eq!(of(&[b"Bearer \xff"]), Err(CredentialError::Malformed));
    }
}
