//! The API key of a request (one `Authorization: Bearer KEY`; specification, section 5), and keys that
//! were sent elsewhere.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, Uri, header::AUTHORIZATION};
use percent_encoding::percent_decode_str;

use super::error::ApiError;
use crate::{exchange::KeyFlaw, state::AppState};

/// The error of a request's key. Messages omit the credentials, which may contain a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CredentialError {
    #[error("the API key is missing: send it as `Authorization: Bearer KEY`")]
    Missing,
    #[error("there is more than one Authorization header: send exactly one")]
    Repeated,
    #[error("the Authorization header has another scheme: send `Authorization: Bearer KEY`")]
    NotBearer,
    #[error("the API key is empty: send it after `Authorization: Bearer `")]
    Empty,
    #[error(
        "the API key contains a space or a non-ASCII character: send it as it is after `Bearer `"
    )]
    Malformed,
    #[error(
        "the API key is not known: check it for a typing error, or give it to the mock with --key \
         KEY=PLAN"
    )]
    Unknown,
}

impl From<CredentialError> for ApiError {
    fn from(error: CredentialError) -> Self {
        // RFC 6750, section 3.
        let challenge = match error {
            CredentialError::Malformed | CredentialError::Unknown => {
                "Bearer realm=\"petstore\", error=\"invalid_token\""
            }
            _ => "Bearer realm=\"petstore\"",
        };
        Self::unauthorized(error.to_string(), challenge)
    }
}

/// Returns the key of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<&str, CredentialError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(CredentialError::Missing)?.as_bytes();
    if values.next().is_some() {
        return Err(CredentialError::Repeated);
    }
    let end = value
        .iter()
        .position(|byte| *byte == b' ')
        .unwrap_or(value.len());
    let (scheme, token) = (&value[..end], value[end..].trim_ascii());
    if scheme.is_empty() {
        return Err(CredentialError::Missing);
    }
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(CredentialError::NotBearer);
    }
    if token.is_empty() {
        return Err(CredentialError::Empty);
    }
    let token = std::str::from_utf8(token).ok();
    token
        .filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()))
        .ok_or(CredentialError::Malformed)
}

/// Finds a key of this server in a query parameter, or in the path apart from its fixed segments, which
/// a key may equal.
pub(super) fn key_in_url(uri: &Uri, app: &AppState) -> Option<KeyFlaw> {
    let accounts = app.accounts();
    for pair in uri.query().unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !value.is_empty() && accounts.is_in(&decoded(value)) {
            return Some(KeyFlaw::InUrl(decoded(name).into()));
        }
    }
    let is_fixed = |segment: &str| matches!(segment, "" | "v1" | "pets" | "store" | "orders");
    let is_key = |segment: Cow<'_, str>| !is_fixed(&segment) && accounts.is_in(&segment);
    let is_in_path = uri.path().split('/').map(decoded).any(is_key);
    is_in_path.then(|| KeyFlaw::InUrl("".into()))
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Whether a valid key was sent in a wrong way: with another scheme than `Bearer`, without a
/// scheme, or in `X-Api-Key`.
pub(super) fn has_other_credentials(headers: &HeaderMap, app: &AppState) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let token = text("authorization").and_then(|value| value.split_ascii_whitespace().last());
    let basic = token.and_then(|token| BASE64_STANDARD.decode(token).ok());
    let basic = basic
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default();
    let mut parts = basic.split(':').chain(token).chain(text("x-api-key"));
    parts.any(|part| app.accounts().get(part).is_some())
}

/// Returns a number that identifies unknown credentials.
pub(super) fn credentials(headers: &HeaderMap) -> u64 {
    let mut hasher = DefaultHasher::new();
    headers
        .get_all(AUTHORIZATION)
        .iter()
        .for_each(|value| value.as_bytes().hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::{
        clock::Clock,
        plan::Plan,
        state::{InitialKey, Settings, Store},
    };

    fn app() -> AppState {
        let key = InitialKey::new("free-key", Plan::Free);
        let store = Store::default();
        AppState::new(
            Clock::system(),
            Settings::default(),
            vec![key],
            store,
            vec![],
        )
        .unwrap()
    }

    #[test]
    fn finds_keys_in_a_url() {
        let flaw = |target: &str| key_in_url(&target.parse().unwrap(), &app());
        for (target, name) in [
            ("/?a=free-key", "a"),
            ("/?limit=5&x=free%2dkey", "x"),
            ("/?API_KEY=free-key", "API_KEY"),
            ("/v1/free%2dkey", ""),
        ] {
            assert_eq!(flaw(target), Some(KeyFlaw::InUrl(name.into())), "{target}");
        }
        for target in [
            "/v1/pets",
            "/?limit=5",
            "/?token=1",
            "/?api_key=x",
            "/?api_key=",
            "/?free-key",
            "/?a=%ff",
        ] {
            assert_eq!(flaw(target), None, "{target}");
        }
    }

    #[test]
    fn finds_a_valid_key_that_is_not_a_bearer_token() {
        let other = |name: &'static str, value: &str| {
            let headers = HeaderMap::from_iter([(
                name.parse::<http::HeaderName>().unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )]);
            has_other_credentials(&headers, &app())
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
        assert_eq!(
            of(&[b"Bearer a", b"Bearer a"]),
            Err(CredentialError::Repeated)
        );
        assert_eq!(of(&[b"Basic abc"]), Err(CredentialError::NotBearer));
        assert_eq!(of(&[b"free-key"]), Err(CredentialError::NotBearer));
        assert_eq!(of(&[b"Bearer"]), Err(CredentialError::Empty));
        assert_eq!(of(&[b"Bearer  "]), Err(CredentialError::Empty));
        assert_eq!(of(&[b"Bearer a b"]), Err(CredentialError::Malformed));
        assert_eq!(of(&[b"Bearer \xff"]), Err(CredentialError::Malformed));
    }
}
