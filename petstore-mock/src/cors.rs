//! CORS headers (Fetch standard, "CORS protocol") for the service. The administration never allows
//! other origins.

use std::{fmt, str::FromStr};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
        ORIGIN, VARY,
    },
};

use crate::operation::Operation;

const EXPOSED: HeaderValue = HeaderValue::from_static(
    "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, Link, Location, \
     Deprecation, Sunset, Date, WWW-Authenticate",
);
/// `Authorization` must be named, because `*` does not include it.
const FIELDS: HeaderValue = HeaderValue::from_static("Authorization, *");
/// Browsers cache a preflight for ten minutes.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The origins whose web pages may use the service, in addition to the mock's own.
///
/// The specification does not show this. Assumption: all origins by default.
///
/// ```
/// use petstore_mock::Cors;
///
/// let one: Cors = "http://localhost:3000".parse()?;
/// assert_eq!(one.to_string(), "http://localhost:3000");
/// assert_eq!("*".parse(), Ok(Cors::any()));
/// assert_eq!("off".parse(), Ok(Cors::off()));
/// assert!("localhost".parse::<Cors>().is_err());
/// # Ok::<(), petstore_mock::ParseCorsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors(
    /// The value of `Access-Control-Allow-Origin`: `*`, or an origin.
    Option<HeaderValue>,
);

const ANY: HeaderValue = HeaderValue::from_static("*");

impl Cors {
    /// Allows pages of every origin.
    #[must_use]
    pub const fn any() -> Self {
        Self(Some(ANY))
    }

    /// Allows no pages of other origins.
    #[must_use]
    pub const fn off() -> Self {
        Self(None)
    }

    /// Whether a request is a preflight.
    pub(crate) fn is_preflight<B>(&self, request: &Request<B>) -> bool {
        let headers = request.headers();
        self.0.is_some()
            && request.method() == Method::OPTIONS
            && headers.contains_key(ORIGIN)
            && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    }

    /// Returns the response to a preflight. It allows the methods of all operations, and of own
    /// routes.
    pub(crate) fn preflight<'m>(&self, own: impl Iterator<Item = &'m Method>) -> Response<Bytes> {
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
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, FIELDS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        response
    }

    /// Adds the headers that let a page read the response and its rate limits.
    pub(crate) fn open(&self, headers: &mut HeaderMap) {
        let Some(origin) = &self.0 else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        if *origin != ANY {
            headers.append(VARY, HeaderValue::from_static("Origin"));
        }
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}

impl Default for Cors {
    fn default() -> Self {
        Self::any()
    }
}

impl fmt::Display for Cors {
    /// Writes the format that [`FromStr`] parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The origin was parsed from text, so it is valid text.
        f.pad(
            self.0
                .as_ref()
                .map_or("off", |origin| origin.to_str().unwrap_or_default()),
        )
    }
}

/// The text is neither `*`, nor `off`, nor an origin such as `http://localhost:3000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give an origin such as http://localhost:3000, or `*` for all, or `off` for none")]
pub struct ParseCorsError;

impl FromStr for Cors {
    type Err = ParseCorsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "*" => return Ok(Self::any()),
            "off" => return Ok(Self::off()),
            _ => {}
        }
        // A browser sends a scheme, a host and optionally a port, without a trailing slash.
        let uri: Uri = text.parse().map_err(|_| ParseCorsError)?;
        let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.authority()) else {
            return Err(ParseCorsError);
        };
        if format!("{scheme}://{host}") != text || host.as_str().contains('@') {
            return Err(ParseCorsError);
        }
        let origin = HeaderValue::from_str(text).map_err(|_| ParseCorsError)?;
        Ok(Self(Some(origin)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_origins_as_browsers_send_them() {
        for origin in [
            "http://localhost:3000",
            "https://example.com",
            "http://[::1]:8080",
        ] {
            assert_eq!(origin.parse::<Cors>().unwrap().to_string(), origin);
        }
        for text in [
            "",
            "localhost",
            "http://x/",
            "http://x/y",
            "http://u@x",
            "/",
            "null",
            "* ",
        ] {
            assert_eq!(text.parse::<Cors>(), Err(ParseCorsError), "{text}");
        }
    }
}
