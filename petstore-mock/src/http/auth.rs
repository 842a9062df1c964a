//! Who sends a request and whether it is let in: the API key, as the specification's section 5 wants it
//! (one `Authorization: Bearer KEY`), its quotas and its ban.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::extract::{FromRequestParts, Request};
use http::{
    HeaderMap, HeaderValue, Version,
    header::{HOST, TRANSFER_ENCODING},
    request::Parts,
};

use super::{
    credentials::{CredentialError, bearer, credentials, key_flaw},
    error::{ApiError, ErrorCode, MAX_HEAD_BYTES, MAX_HEADER_FIELDS},
};
use crate::{
    exchange::{Admission, KeyFlaw, KeyLabel},
    journal::Caller,
    operation::Operation,
    quota::Rate,
    state::{AppState, Verdict},
};

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
        self.error.as_ref().filter(|_| self.admission != Admission::Anonymous)
    }
}

/// Finds out who sends a request and counts it against the quota of its key, whatever happens to it
/// next. This is the one place that decides the operation of a request.
pub(crate) fn admit(
    app: &AppState,
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
        context.rate = Some(app.anonymous_rate(now));
        (context.admission, context.error) = (Admission::Rejected, Some(error));
        return context;
    }
    if !is_of_the_service(request.uri().path()) {
        return context;
    }
    let bearer = bearer(request.headers());
    let admitted = bearer.and_then(|key| app.admit(key, now).ok_or(CredentialError::Unknown));
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
            context.admission = Admission::Anonymous;
            context.rate = Some(app.anonymous_rate(now));
            context.error = Some(wrong.into());
        }
    }
    context.flaw = key_flaw(request, wrong, app);
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
