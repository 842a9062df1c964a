//! Who sends a request and whether it is let in: the API key, as the specification's section 5 wants it
//! (one `Authorization: Bearer KEY`), its quotas and its ban.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::extract::{FromRequestParts, Request};
use http::{
    HeaderMap, HeaderValue, Version,
    header::{AUTHORIZATION, HOST, TRANSFER_ENCODING},
    request::Parts,
};

use super::{
    error::{ApiError, ErrorCode, MAX_HEAD_BYTES, MAX_HEADER_FIELDS},
    key_flaw::{credentials, key_flaw},
};
use crate::{
    exchange::{Admission, KeyFlaw, KeyLabel},
    journal::Caller,
    operation::Operation,
    quota::Rate,
    world::{Verdict, World},
};

/// The challenge of RFC 6750, section 3, to a request without a key.
const CHALLENGE: &str = "Bearer realm=\"petstore\"";
/// The same to a request with a bad key.
const INVALID_TOKEN: &str = "Bearer realm=\"petstore\", error=\"invalid_token\"";

/// What is known of a request before it is routed.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    /// The one time that everything about this request goes by, on the mock's clock.
    pub(crate) now: Duration,
    pub(crate) peer: IpAddr,
    pub(crate) operation: Option<Operation>,
    pub(crate) admission: Admission,
    /// What its rate headers say; nothing outside the service.
    pub(crate) rate: Option<Rate>,
    pub(crate) key: Option<Arc<KeyLabel>>,
    pub(crate) flaw: Option<KeyFlaw>,
    pub(crate) credentials: u64,
    /// Why it is not let in. A 429 and a malformed request come before routing, a 401 after it.
    error: Option<ApiError>,
}

impl RequestContext {
    /// Returns the error that comes before routing.
    pub(crate) fn refused(&self) -> Option<&ApiError> {
        self.error.as_ref().filter(|_| self.admission != Admission::Stranger)
    }
}

/// Finds out who sends a request and counts it against the quota of its key, whatever happens to it
/// next. This is the one place that decides the operation of a request.
pub(crate) fn admit(
    world: &World,
    caller: &Caller,
    request: &Request,
    now: Duration,
) -> RequestContext {
    let operation = Operation::of(request.method(), request.uri().path());
    let mut context = RequestContext {
        now,
        peer: caller.peer,
        operation,
        admission: Admission::Outside,
        rate: None,
        key: None,
        flaw: None,
        credentials: 0,
        error: None,
    };
    if let Some(error) = malformed(request, caller) {
        context.rate = Some(world.rate_of_strangers(now));
        (context.admission, context.error) = (Admission::Rejected, Some(error));
        return context;
    }
    if !is_of_the_service(request.uri().path()) {
        return context;
    }
    let bearer = bearer(request.headers());
    let admitted = bearer.and_then(|key| world.admit(key, now).ok_or(CredentialError::Unknown));
    let wrong = admitted.as_ref().err().copied();
    match admitted {
        Ok(admitted) => {
            (context.admission, context.error) = match admitted.verdict {
                Verdict::Admitted => (Admission::Admitted, None),
                Verdict::Exhausted(quota) => {
                    (Admission::Refused, Some(ApiError::exhausted(quota, now)))
                }
                Verdict::Banned(until) => (Admission::Banned, Some(ApiError::banned(until, now))),
            };
            (context.rate, context.key) = (Some(admitted.rate), Some(admitted.label));
        }
        Err(wrong) => {
            context.admission = Admission::Stranger;
            context.rate = Some(world.rate_of_strangers(now));
            context.error = Some(wrong.into());
        }
    }
    context.flaw = key_flaw(request, wrong, world);
    context.credentials = credentials(request.headers(), wrong);
    context
}

fn is_of_the_service(path: &str) -> bool {
    path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns why a request is refused before anything else: one connection too many, or what RFC 9112
/// does not allow and hyper lets pass. HTTP/2 has no `Host` and no transfer codings; of its fields hyper
/// limits only the length.
fn malformed(request: &Request, caller: &Caller) -> Option<ApiError> {
    if caller.is_over_limit {
        return Some(ApiError::overloaded().and_close());
    }
    let (headers, version) = (request.headers(), request.version());
    if version == Version::HTTP_2 {
        return is_too_large(headers).then(ApiError::headers_too_large);
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
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
    Some(ApiError::new(ErrorCode::BadRequest, message).and_close())
}

fn is_too_large(headers: &HeaderMap) -> bool {
    let lengths = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    headers.len() > MAX_HEADER_FIELDS || lengths.sum::<usize>() > MAX_HEAD_BYTES as usize
}

/// Whether a host and a port can be written like this (RFC 3986, section 3.2.2).
fn is_host(value: &HeaderValue) -> bool {
    let is_part = |byte: &u8| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'#' | b'/' | b'<'..=b'@' | b'\\' | b'^' | b'`' | b'{'..=b'}')
    };
    value.as_bytes().iter().all(is_part)
}

/// A valid key. Every handler of the service asks for it, so that 404 and 405 come before 401.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiKey;

impl<S: Sync> FromRequestParts<S> for ApiKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let context = parts.extensions.get::<RequestContext>();
        let context = context.ok_or_else(|| ApiError::internal("a request without a context"))?;
        match &context.error {
            None if context.admission == Admission::Admitted => Ok(Self),
            None => Err(CredentialError::Missing.into()),
            Some(error) => Err(error.clone()),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

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
