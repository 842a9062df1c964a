//! Own routes: static responses for operations that the contract does not show.

#[cfg(any(test, feature = "cli"))]
mod form;

use std::fmt;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, TRANSFER_ENCODING},
};
use serde_json::Value;

use crate::operation::{
    Operation, PathTemplate, RATE_HEADERS, is_method, is_parameter, problem_of_method,
};

/// The static response of an own route: see [`Builder::route`](crate::Builder::route).
///
/// ```
/// use petstore_mock::RouteResponse;
/// use serde_json::json;
///
/// let stock = RouteResponse::json(&json!({"available": 7}));
/// let accepted = RouteResponse::empty().with_status(202);
/// # assert_ne!(stock, accepted);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteResponse {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl RouteResponse {
    /// Creates a 200 without a body.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            status: 200,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// Creates a 200 with a JSON body.
    #[must_use]
    pub fn json(body: &Value) -> Self {
        Self::text(body.to_string())
            .with_header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// Creates a 200 with a text as its body.
    #[must_use]
    pub fn text(body: impl Into<String>) -> Self {
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        Self {
            body: body.into().into(),
            ..Self::empty()
        }
        .with_header(CONTENT_TYPE, plain)
    }

    /// Sets the status, from 200 to 599.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Sets a header field. The mock itself sets `Date` and the rate headers, so a route must not.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Returns what is wrong with the response, if anything.
    fn problem(&self) -> Option<&'static str> {
        let has = |name| self.headers.contains_key(name);
        if !(200..600).contains(&self.status) {
            Some("the status of a response is from 200 to 599")
        } else if matches!(self.status, 204 | 205 | 304) && !self.body.is_empty() {
            Some("a response with this status has no body")
        } else if has(CONTENT_LENGTH) || has(TRANSFER_ENCODING) {
            Some("Content-Length and Transfer-Encoding follow from the body: leave them out")
        } else if has(DATE) || RATE_HEADERS.into_iter().any(has) {
            Some("the mock itself sets Date and the rate headers: leave them out, or use a fault")
        } else {
            None
        }
    }

    pub(crate) fn to_response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.body.clone());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or_default();
        *response.headers_mut() = self.headers.clone();
        response
    }
}

/// The error of an own route. The message names the route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the route {route}: {problem}")]
pub struct RouteError {
    route: String,
    problem: String,
}

/// An own route.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    method: Method,
    path: PathTemplate,
    response: RouteResponse,
}

impl Route {
    pub(crate) fn new(method: Method, path: &str, response: RouteResponse) -> Self {
        Self {
            method,
            path: PathTemplate::new(path),
            response,
        }
    }

    /// Whether a request is for this route. `HEAD` counts as `GET`.
    fn answers(&self, method: &Method, path: &str) -> bool {
        is_method(method, &self.method) && self.path.matches(path)
    }

    /// Returns what is wrong with the route, if anything.
    fn problem(&self) -> Option<&'static str> {
        let path = self.path.as_str();
        let problem = self.path.problem().or(problem_of_method(&self.method));
        if problem.is_some() {
            return problem;
        }
        if [Method::HEAD, Method::OPTIONS, Method::CONNECT].contains(&self.method) {
            return Some("HEAD follows from GET, and OPTIONS from the other methods");
        }
        let last = path.rsplit('/').next().unwrap_or_default();
        let is_any_pet = is_parameter(last) || last.parse::<i64>().is_ok();
        let contract = Operation::of(&self.method, path);
        match contract {
            Some(operation) if is_any_pet || operation.path() == path => {
                Some("this is an operation of the contract: change its responses with a fault")
            }
            _ => self.response.problem(),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// The own routes of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes(Vec<Route>);

impl Routes {
    /// Checks the routes.
    pub(crate) fn new(routes: Vec<Route>) -> Result<Self, RouteError> {
        for (place, route) in routes.iter().enumerate() {
            let is_twin = |other: &Route| {
                other.method == route.method && shape(&other.path) == shape(&route.path)
            };
            let problem = match routes[..place].iter().find(|other| is_twin(other)) {
                Some(other) => Some(format!("another one answers the same requests: {other}")),
                None => route.problem().map(str::to_owned),
            };
            if let Some(problem) = problem {
                let route = route.to_string();
                return Err(RouteError { route, problem });
            }
        }
        Ok(Self(routes))
    }

    /// Returns the response to a request; `None` if no own route answers it. A literal segment
    /// beats a parameter, also one of the contract's.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Option<&RouteResponse> {
        let found = self.0.iter().filter(|route| route.answers(method, path));
        let best = found.max_by_key(|route| literals(&route.path))?;
        let contract = Operation::of(method, path).map(|one| PathTemplate::new(one.path()));
        let is_beaten = contract.is_some_and(|it| literals(&best.path) < literals(&it));
        (!is_beaten).then_some(&best.response)
    }

    /// Returns the methods that own routes support on a path.
    pub(crate) fn methods_of(&self, path: &str) -> Vec<&Method> {
        let routes = self.0.iter().filter(|route| route.path.matches(path));
        routes.map(|route| &route.method).collect()
    }

    /// Returns the method and path of each route.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(ToString::to_string)
    }
}

/// Returns which segments are literals. Of two templates that fit the same path, the one whose first
/// different segment is a literal is greater.
fn literals(path: &PathTemplate) -> Vec<bool> {
    let segments = path.segments();
    segments.map(|segment| !is_parameter(segment)).collect()
}

/// Returns the segments without the names of the parameters.
fn shape(path: &PathTemplate) -> Vec<&str> {
    path.segments()
        .map(|segment| if is_parameter(segment) { "{}" } else { segment })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(all: &[(Method, &str)]) -> Result<Routes, String> {
        let route = |(method, path): &(Method, &str)| {
            Route::new(method.clone(), path, RouteResponse::text(*path))
        };
        Routes::new(all.iter().map(route).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn literals_beat_parameters() {
        let routes = routes(&[
            (Method::GET, "/store/{any}"),
            (Method::GET, "/store/{any}/{more}"),
            (Method::GET, "/store/inventory"),
            (Method::GET, "/pets/search"),
            (Method::PUT, "/pets/{petId}"),
        ])
        .unwrap();
        let found = |method: Method, path: &str| {
            let found = routes.find(&method, path)?;
            Some(String::from_utf8(found.body.to_vec()).unwrap())
        };
        for (method, path, route) in [
            (Method::GET, "/v1/store/7", Some("/store/{any}")),
            (
                Method::HEAD,
                "/v1/store/inventory",
                Some("/store/inventory"),
            ),
            (Method::GET, "/v1/store/7/8", Some("/store/{any}/{more}")),
            (Method::GET, "/v1/store/orders", None),
            (Method::GET, "/v1/pets/search", Some("/pets/search")),
            (Method::GET, "/v1/pets/7", None),
            (Method::PUT, "/v1/pets/7", Some("/pets/{petId}")),
            (Method::HEAD, "/v1/pets/7", None),
        ] {
            assert_eq!(found(method, path).as_deref(), route, "{path}");
        }
        assert_eq!(routes.methods_of("/v1/pets/7"), [Method::PUT]);
    }

    #[test]
    fn says_what_is_wrong_with_a_route() {
        for (all, wrong) in [
            (
                &[(Method::GET, "/pets/{id}")][..],
                "the route GET /v1/pets/{id}: this is an operation of the contract",
            ),
            (
                &[(Method::POST, "/v1/pets")],
                "POST /v1/pets: this is an operation",
            ),
            (
                &[(Method::GET, "/pets/7")],
                "this is an operation of the contract",
            ),
            (
                &[(Method::PUT, "/a/{b}"), (Method::PUT, "/a/{c}")],
                "the route PUT /v1/a/{c}: another one answers the same requests: PUT /v1/a/{b}",
            ),
            (&[(Method::HEAD, "/a")], "HEAD follows from GET"),
            (&[(Method::GET, "/")], "write the path as in"),
            (&[(Method::GET, "/a//b")], "an empty segment"),
            (&[(Method::GET, "/a?b=1")], "without a query"),
            (&[(Method::GET, "/a{b}")], "write the path as in"),
            (&[(Method::GET, "/{}")], "write the path as in"),
            (
                &[(Method::GET, "/caf\u{e9}")],
                "other characters than ASCII",
            ),
            (&[(Method::GET, "/_mock/health")], "not below /_mock"),
            (
                &[(Method::GET, "a/b")],
                "the route GET a/b: write the path as in /store/orders/{orderId}: with a slash",
            ),
            (
                &[(Method::from_bytes(b"get").unwrap(), "/a")],
                "the route get /v1/a: write the method in capitals, such as GET",
            ),
        ] {
            let error = routes(all).unwrap_err();
            assert!(error.contains(wrong), "{all:?}: {error}");
        }
    }
}
