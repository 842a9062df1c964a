//! Authentication and admission: the API key (one `Authorization: Bearer KEY`; specification,
//! section 5), its quotas and its ban.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use axum::extract::{FromRequestParts, Request};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderValue, Uri, Version,
    header::{AUTHORIZATION, HOST, TRANSFER_ENCODING},
    request::Parts,
};
use percent_encoding::percent_decode_str;

use super::error::{ApiError, ErrorCode, MAX_HEAD_BYTES, MAX_HEADER_FIELDS};
use crate::{
    exchange::{Admission, KeyFlaw},
    journal::{Arrival, Caller},
    operation::Operation,
    state::{AppState, Verdict},
};

/// The challenge for a request without a key (RFC 6750, section 3).
const CHALLENGE: &str = "Bearer realm=\"petstore\"";
/// The challenge for a request with an invalid key.
const INVALID_TOKEN: &str = "Bearer realm=\"petstore\", error=\"invalid_token\"";

/// The context of a request, for handlers.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    /// The time of the arrival, on the mock's clock.
    pub(crate) now: Duration,
    pub(crate) peer: IpAddr,
    /// The error of its key, if any. `None` outside the service, where no key is needed.
    pub(crate) key_error: Option<ApiError>,
}

/// A request before it is routed.
pub(crate) struct AdmissionResult {
    pub(crate) arrival: Arrival,
    /// The error of its key, or its refusal: a 429, or a malformed request.
    pub(crate) error: Option<ApiError>,
}

/// Authenticates a request, and counts it in the quotas of its key, whatever happens next. Only
/// this function determines the operation of a request.
pub(crate) fn admit(
    app: &AppState,
    caller: &Caller,
    target: Arc<str>,
    request: &Request,
) -> AdmissionResult {
    let now = app.clock.since_epoch();
    let (path, headers) = (request.uri().path(), request.headers());
    let mut arrival = Arrival::new(now, target);
    arrival.operation = Operation::of(request.method(), path);
    if let Some(error) = malformed(request, caller) {
        arrival.rate = Some(app.anonymous_rate(now));
        arrival.admission = Admission::Rejected;
        return AdmissionResult {
            arrival,
            error: Some(error),
        };
    }
    if !is_of_the_service(path) {
        return AdmissionResult {
            arrival,
            error: None,
        };
    }
    let key = bearer(headers);
    let error = match key.and_then(|key| app.admit(key, now).ok_or(CredentialError::Unknown)) {
        Ok(admitted) => {
            (arrival.rate, arrival.key) = (Some(admitted.rate), Some(admitted.label));
            let (admission, error) = match admitted.verdict {
                Verdict::Admitted => (Admission::Admitted, None),
                Verdict::Exhausted(quota) => {
                    (Admission::Refused, Some(ApiError::exhausted(quota, now)))
                }
                Verdict::Banned(until) => (Admission::Banned, Some(ApiError::banned(until, now))),
            };
            arrival.admission = admission;
            arrival.flaw = key_in_url(request.uri(), arrival.operation, app);
            error
        }
        Err(error) => {
            arrival.rate = Some(app.anonymous_rate(now));
            arrival.admission = Admission::Anonymous;
            let in_url = key_in_url(request.uri(), arrival.operation, app);
            arrival.flaw = in_url.or_else(|| {
                let is_other =
                    matches!(error, CredentialError::NotBearer | CredentialError::Missing);
                (is_other && has_other_credentials(headers, app)).then_some(KeyFlaw::OtherScheme)
            });
            arrival.credentials = credentials(headers);
            Some(error.into())
        }
    };
    AdmissionResult { arrival, error }
}

fn is_of_the_service(path: &str) -> bool {
    path.strip_prefix("/v1")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns why a request is refused before anything else: too many connections, or a violation of
/// RFC 9112 that hyper accepts. HTTP/2 has no `Host` and no transfer codings, and hyper limits only
/// the length of its fields.
fn malformed(request: &Request, caller: &Caller) -> Option<ApiError> {
    if caller.is_over_limit {
        return Some(ApiError::overloaded().and_close());
    }
    let (headers, version) = (request.headers(), request.version());
    if version == Version::HTTP_2 {
        return is_too_large(headers).then(ApiError::headers_too_large);
    }
    let codings = headers.get_all(TRANSFER_ENCODING).iter();
    // The coding is applied once (RFC 9112, section 6.1); two fields are one list.
    if codings
        .enumerate()
        .any(|(place, coding)| place > 0 || !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
    {
        let message = "unsupported `Transfer-Encoding`; only `chunked` is accepted";
        return Some(ApiError::new(ErrorCode::NotImplemented, message).and_close());
    }
    let mut hosts = headers.get_all(HOST).iter();
    let message = match (hosts.next(), hosts.next()) {
        (None, _) if version == Version::HTTP_11 => "the Host header is missing",
        (_, Some(_)) => "there is more than one Host header: send exactly one",
        (Some(host), None) if !is_host(host) => "the Host header is not a valid host",
        _ => return None,
    };
    Some(ApiError::bad_request(message))
}

fn is_too_large(headers: &HeaderMap) -> bool {
    let lengths = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    headers.len() > MAX_HEADER_FIELDS || lengths.sum::<usize>() > MAX_HEAD_BYTES as usize
}

/// Whether this is a valid host with an optional port (RFC 3986, section 3.2.2).
fn is_host(value: &HeaderValue) -> bool {
    let is_part = |byte: &u8| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'#' | b'/' | b'<'..=b'@' | b'\\' | b'^' | b'`' | b'{'..=b'}')
    };
    value.as_bytes().iter().all(is_part)
}

/// A valid key. Every handler of the service extracts it, so that 404 and 405 come before 401.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiKey;

impl<S: Sync> FromRequestParts<S> for ApiKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let context = parts.extensions.get::<RequestContext>();
        let context = context.ok_or_else(|| ApiError::internal("a request without a context"))?;
        context.key_error.clone().map_or(Ok(Self), Err)
    }
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
    #[error("the API key holds a space or a character beyond ASCII, which no key does")]
    Malformed,
    #[error(
        "the API key is not known: check it for a typing error, or give it to the mock with --key \
         KEY=PLAN"
    )]
    Unknown,
}

impl From<CredentialError> for ApiError {
    fn from(error: CredentialError) -> Self {
        let challenge = match error {
            CredentialError::Malformed | CredentialError::Unknown => INVALID_TOKEN,
            _ => CHALLENGE,
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

/// Query parameters that always count as keys.
const KEY_PARAMETERS: [&str; 4] = ["api_key", "apikey", "api-key", "access_token"];

/// Finds a key in a query parameter or in the path.
fn key_in_url(uri: &Uri, operation: Option<Operation>, app: &AppState) -> Option<KeyFlaw> {
    let mut pairs = uri.query().into_iter().flat_map(|query| query.split('&'));
    let parameter = pairs.find_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name);
        let is_named = KEY_PARAMETERS
            .iter()
            .any(|one| one.eq_ignore_ascii_case(&name));
        let is_found = !value.is_empty() && (is_named || app.accounts().is_in(&decoded(value)));
        is_found.then(|| name.into())
    });
    // A key may equal a segment of the service's paths.
    let may_hold_key = matches!(operation, None | Some(Operation::GetPet));
    let is_key = |segment: &str| {
        !matches!(segment, "" | "v1" | "pets" | "store" | "orders")
            && app.accounts().is_in(&decoded(segment))
    };
    let in_path = || (may_hold_key && uri.path().split('/').any(is_key)).then(|| "".into());
    parameter.or_else(in_path).map(KeyFlaw::InUrl)
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Whether a valid key was sent with another scheme than `Bearer`, without a scheme, or in
/// `X-Api-Key`.
fn has_other_credentials(headers: &HeaderMap, app: &AppState) -> bool {
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
fn credentials(headers: &HeaderMap) -> u64 {
    let mut hasher = DefaultHasher::new();
    headers
        .get_all(AUTHORIZATION)
        .iter()
        .for_each(|value| value.as_bytes().hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Clock,
        plan::Plan,
        state::{FirstKey, Settings, Store},
    };

    fn app() -> AppState {
        let key = FirstKey {
            key: "free-key".to_owned(),
            plan: Plan::Free,
            name: None,
        };
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
        let flaw = |target: &str| key_in_url(&target.parse().unwrap(), None, &app());
        for (target, name) in [
            ("/?a=free-key", "a"),
            ("/?limit=5&x=free%2dkey", "x"),
            ("/?API_KEY=x", "API_KEY"),
            ("/?access_token=1&limit=5", "access_token"),
            ("/v1/free%2dkey", ""),
        ] {
            assert_eq!(flaw(target), Some(KeyFlaw::InUrl(name.into())), "{target}");
        }
        for target in [
            "/v1/pets",
            "/?limit=5",
            "/?token=1",
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
