//! CORS headers (Fetch standard, "CORS protocol") for the service, which pages of all origins may use.
//! The administration never allows other origins.

use axum::body::Body;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
        ORIGIN,
    },
};

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

/// Returns the response to a preflight. It allows all methods, as own routes may have any.
pub(crate) fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    // `Authorization` must be named, because `*` does not include it. Browsers cache a preflight for
    // ten minutes.
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "*"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, *"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    open(response.headers_mut());
    response
}

/// Adds the headers that let a page read the response and its rate limits.
pub(crate) fn open(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}
