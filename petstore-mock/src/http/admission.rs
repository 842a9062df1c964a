//! Admission: whether a request is valid HTTP, has a known key, and is within the quotas of its key.

use std::sync::Arc;

use http::{
    HeaderValue, Request, Version,
    header::{HOST, TRANSFER_ENCODING},
};

use super::{
    credentials::{CredentialError, bearer, credentials, has_other_credentials, key_in_url},
    error::{ApiError, ErrorCode},
};
use crate::{
    exchange::{Admission, KeyFlaw},
    journal::{Arrival, Caller},
    operation::Operation,
    state::{AppState, Verdict},
};

/// Authenticates a request, and counts it in the quotas of its key, whatever happens next. Only
/// this function determines the operation of a request. Also returns the error of its key, or its
/// refusal: a 429, or a malformed request.
pub(crate) fn admit<B>(
    app: &AppState,
    caller: &Caller,
    target: Arc<str>,
    request: &Request<B>,
) -> (Arrival, Option<ApiError>) {
    let now = app.clock().since_epoch();
    let (path, headers) = (request.uri().path(), request.headers());
    let mut arrival = Arrival::new(now, target);
    if app.settings().routes.find(request.method(), path).is_none() {
        arrival.operation = Operation::of(request.method(), path);
    }
    if let Some(error) = malformed(request, caller) {
        arrival.rate = Some(app.anonymous_rate(now));
        arrival.admission = Admission::Rejected;
        return (arrival, Some(error));
    }
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
                Verdict::Exhausted(quota) => {
                    (Admission::Refused, Some(ApiError::exhausted(quota, now)))
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
            if arrival.flaw.is_none() && is_other && has_other_credentials(headers, app) {
                arrival.flaw = Some(KeyFlaw::OtherScheme);
            }
            arrival.credentials = credentials(headers);
            Some(error.into())
        }
    };
    (arrival, error)
}

fn is_of_the_service(path: &str) -> bool {
    path.strip_prefix("/v1")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns why a request is refused before anything else: too many connections, or a violation of
/// RFC 9112 that hyper accepts. HTTP/2 has no `Host` and no transfer codings.
fn malformed<B>(request: &Request<B>, caller: &Caller) -> Option<ApiError> {
    if caller.is_over_limit {
        return Some(ApiError::overloaded().and_close());
    }
    let (headers, version) = (request.headers(), request.version());
    if version == Version::HTTP_2 {
        return None;
    }
    let codings = headers.get_all(TRANSFER_ENCODING).iter();
    // The coding must be applied exactly once (RFC 9112, section 6.1). Two fields are one list.
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

/// Whether this is a valid host with an optional port (RFC 3986, section 3.2.2).
fn is_host(value: &HeaderValue) -> bool {
    let is_part = |byte: &u8| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'#' | b'/' | b'<'..=b'@' | b'\\' | b'^' | b'`' | b'{'..=b'}')
    };
    value.as_bytes().iter().all(is_part)
}
