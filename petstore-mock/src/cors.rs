//! CORS headers (Fetch standard, "CORS protocol") for the service, which pages of all origins may use.
//! The administration never allows other origins.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
        ORIGIN,
    },
};

use crate::operation::Operation;

const EXPOSED: HeaderValue = HeaderValue::from_static(
    "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, Link, Location, \
     Deprecation, Sunset, Date, WWW-Authenticate",
);

/// Whether a request is a preflight.
pub(crate) fn is_preflight<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    request.method() == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the response to a preflight. It allows the methods of all operations, and of own routes.
pub(crate) fn preflight<'m>(own: impl Iterator<Item = &'m Method>) -> Response<Bytes> {
    let operations = Operation::ALL.iter().map(|operation| operation.method());
    let methods = operations.chain(own.cloned());
    let mut names: Vec<String> = methods.map(|method| method.to_string()).collect();
    names.push(Method::HEAD.to_string());
    names.sort();
    names.dedup();
    // The names are those of valid methods, so they are a valid value.
    let methods = HeaderValue::try_from(names.join(", "));
    let methods = methods.unwrap_or(HeaderValue::from_static("*"));
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    // `Authorization` must be named, because `*` does not include it.
    let fields = HeaderValue::from_static("Authorization, *");
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, fields);
    // Browsers cache a preflight for ten minutes.
    let max_age = HeaderValue::from_static("600");
    headers.insert(ACCESS_CONTROL_MAX_AGE, max_age);
    response
}

/// Adds the headers that let a page read the response and its rate limits.
pub(crate) fn open(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}
