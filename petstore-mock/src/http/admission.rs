//! Admission: whether a request has a known key, and is within the quotas of its key.

use std::sync::Arc;

use http::Request;
use percent_encoding::percent_decode_str;

use super::{
    credentials::{CredentialError, bearer, credentials, has_other_credentials, key_in_url},
    error::ApiError,
};
use crate::{
    exchange::{Admission, KeyFlaw},
    journal::Arrival,
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
    if app.settings().routes.find(request.method(), path).is_none() {
        arrival.operation = Operation::of(request.method(), path);
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

/// Whether a path, with or without percent-encoding, is below `/v1`.
fn is_of_the_service(path: &str) -> bool {
    let first = path.split('/').nth(1);
    first.is_some_and(|first| percent_decode_str(first).eq(b"v1".iter().copied()))
}
