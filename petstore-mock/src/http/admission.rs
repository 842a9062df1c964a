//! Admission: whether a request has a known key (one `Authorization: Bearer KEY`; specification, section
//! 5), and is within the quotas of its key. Also finds keys that were sent elsewhere.

use std::{borrow::Cow, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, Request, Uri, header::AUTHORIZATION};
use percent_encoding::percent_decode_str;

use super::error::ApiError;
use crate::{
    exchange::{Admission, Arrival, KeyFlaw, is_credential},
    operation::Operation,
    state::{AppState, Verdict},
};

/// Authenticates a request, and counts it in the quotas of its key, whatever happens next. Only
/// this function determines the operation of a request. Also returns the error of its key: a 401 or
/// a 429.
pub(crate) fn admit<B>(
    app: &AppState,
    target: Arc<str>,
    request: &Request<B>,
) -> (Arrival, Option<ApiError>) {
    let now = app.clock().since_epoch();
    let (path, headers) = (request.uri().path(), request.headers());
    let mut arrival = Arrival::new(now, target);
    let is_own = app.settings().routes.find(request.method(), path).is_some();
    if !is_own {
        arrival.operation = Operation::of(request.method(), path);
    }
    arrival.is_known = is_own || arrival.operation.is_some();
    if !is_of_the_service(path) {
        return (arrival, None);
    }
    arrival.flaw = key_in_url(request.uri(), app);
    let known = bearer(headers).and_then(|key| app.admit(key, now).ok_or(CredentialError::Unknown));
    let error = match known {
        Ok(admitted) => {
            (arrival.rate, arrival.key) = (Some(admitted.rate), Some(admitted.label));
            arrival.strikes = admitted.strikes;
            let (admission, error) = match admitted.verdict {
                Verdict::Admitted => (Admission::Admitted, None),
                Verdict::Exhausted(period, rate) => {
                    let error = ApiError::exhausted(period, rate, now);
                    (Admission::Refused, Some(error))
                }
                Verdict::Banned(until) => (Admission::Banned, Some(ApiError::banned(until, now))),
            };
            arrival.admission = admission;
            error
        }
        Err(error) => {
            arrival.rate = Some(app.anonymous_rate(now));
            arrival.admission = Admission::Anonymous;
            let is_other = matches!(error, CredentialError::NotBearer | CredentialError::Missing);
            if arrival.flaw.is_none() && is_other {
                arrival.flaw = other_credentials(headers, app);
            }
            // An unknown path or method is an error of its own, with or without a key.
            arrival.is_known.then(|| error.into())
        }
    };
    (arrival, error)
}

/// Whether a path, with or without percent-encoding, is below `/v1`.
fn is_of_the_service(path: &str) -> bool {
    let first = path.split('/').nth(1);
    first.is_some_and(|first| percent_decode_str(first).eq(b"v1".iter().copied()))
}

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

/// Finds a key of this server in a query parameter, or in the path.
fn key_in_url(uri: &Uri, app: &AppState) -> Option<KeyFlaw> {
    let mut accounts = app.accounts();
    for pair in uri.query().unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name), decoded(value));
        // Under such a name, even a short key was meant as a key.
        let is_given = is_credential(&name.to_ascii_lowercase()) && accounts.get(&value).is_some();
        if is_given || accounts.is_in(&value) {
            return Some(KeyFlaw::InUrl(name.into()));
        }
    }
    let mut segments = uri.path().split('/');
    let is_in_path = segments.any(|segment| accounts.is_in(&decoded(segment)));
    is_in_path.then(|| KeyFlaw::InUrl("".into()))
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Finds a key of this server that was sent in a wrong way: with another scheme than `Bearer`, without
/// a scheme, or in `X-Api-Key`.
fn other_credentials(headers: &HeaderMap, app: &AppState) -> Option<KeyFlaw> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let token = text("authorization").and_then(|value| value.split_ascii_whitespace().last());
    let basic = token.and_then(|token| BASE64_STANDARD.decode(token).ok());
    let basic = basic
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default();
    let is_key = |part: &str| app.accounts().get(part).is_some();
    if basic.split(':').chain(token).any(is_key) {
        return Some(KeyFlaw::OtherScheme);
    }
    text("x-api-key")
        .is_some_and(is_key)
        .then_some(KeyFlaw::OtherHeader)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::{
        clock::Clock,
        plan::Plan,
        state::{NewKey, Settings, Store},
    };

    fn app() -> AppState {
        let keys =
            ["free-key", "7", "sold"].map(|key| NewKey::new(Some(key.to_owned()), Plan::Free));
        let store = Store::default();
        AppState::new(
            Clock::system(),
            Settings::default(),
            keys.to_vec(),
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
            // A short key occurs by chance, but not under such a name.
            ("/?api_key=7", "api_key"),
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
            "/v1/sold",
            "/v1/pets/7",
            "/v1/pets/%37",
            "/v1/pets?limit=7&status=sold",
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
            other_credentials(&headers, &app())
        };
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        for value in [
            "free-key",
            "Token free-key",
            &basic("free-key:"),
            &basic("me:free-key"),
        ] {
            let flaw = other("authorization", value);
            assert_eq!(flaw, Some(KeyFlaw::OtherScheme), "{value}");
        }
        assert_eq!(other("x-api-key", "free-key"), Some(KeyFlaw::OtherHeader));
        assert_eq!(other("authorization", "Basic abc"), None);
        assert_eq!(other("x-api-key", "nonsense"), None);
    }
}
