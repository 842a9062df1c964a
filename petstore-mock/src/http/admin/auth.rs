//! Access control of the administration: requests from this machine and its own pages, or with the
//! admin token.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Extension, Request, State},
    middleware::Next,
    response::Response,
};
use http::{
    header::{HOST, ORIGIN},
    uri::Authority,
};

use crate::{
    exchange::Caller,
    http::{
        admission::bearer,
        error::{ApiError, ErrorCode},
    },
    state::AppState,
};

/// RFC 6750, section 3.
const CHALLENGE: &str = "Bearer realm=\"petstore-mock\"";

/// Lets a request through to its handler, or refuses it.
pub(super) async fn guard(
    Extension(caller): Extension<Caller>,
    State(app): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let token = app.settings().admin_token.as_deref();
    let has_token = |token| bearer(request.headers()) == Ok(token);
    let is_local = caller.peer.to_canonical().is_loopback();
    if (is_local && names_this_machine(&request) && is_same_origin(&request))
        || token.is_some_and(has_token)
    {
        return Ok(next.run(request).await);
    }
    Err(match token {
        Some(_) => ApiError::unauthorized(
            "administration is local only, or needs the token: send it as `Authorization: Bearer \
             TOKEN`",
            CHALLENGE,
        ),
        None => ApiError::new(
            ErrorCode::RouteNotFound,
            "administration is local only; use `--admin-token-file` to open it to other machines",
        ),
    })
}

/// Returns the host and port that a request names: in its target, as in HTTP/2, or else in `Host`.
fn authority(request: &Request) -> Option<Authority> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.clone());
    }
    let host = request.headers().get(HOST)?;
    Authority::try_from(host.as_bytes()).ok()
}

/// Returns whether a request names this machine as its host. A web page can point its own host name
/// to this machine (DNS rebinding). Its requests then have no `Origin`, but they still name the
/// page's host.
fn names_this_machine(request: &Request) -> bool {
    let Some(authority) = authority(request) else {
        return false;
    };
    let name = authority.host();
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

/// Returns whether a request comes from the mock's own pages, or not from a page at all. Only
/// browsers send `Origin`. Without this check, any web page could move the clock of a mock on the
/// visitor's machine.
fn is_same_origin(request: &Request) -> bool {
    let Some(origin) = request.headers().get(ORIGIN) else {
        return true;
    };
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let place = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    place.is_some_and(|place| authority(request).is_some_and(|own| own.as_str() == place))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    /// Creates a request for a target, with a `Host` and an `Origin` if they are given.
    fn request(target: &str, host: Option<&str>, origin: Option<&str>) -> Request {
        let mut request = http::Request::builder().uri(target);
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn only_names_that_no_one_else_can_give_are_this_machines() {
        for host in [
            "localhost",
            "LocalHost:4010",
            "127.0.0.1:4010",
            "[::1]:4010",
            "192.0.2.1",
        ] {
            assert!(
                names_this_machine(&request("/", Some(host), None)),
                "{host}"
            );
            let target = format!("https://{host}/");
            assert!(names_this_machine(&request(&target, None, None)), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:4010",
            "x",
            "",
            "a b",
            "127.0.0.1.x",
        ] {
            assert!(
                !names_this_machine(&request("/", Some(host), None)),
                "{host}"
            );
        }
        let target = "https://evil.example/";
        assert!(!names_this_machine(&request(
            target,
            Some("localhost"),
            None
        )));
        assert!(!names_this_machine(&request("/", None, None)));
    }

    #[test]
    fn an_origin_must_be_the_host_itself() {
        for (target, host) in [
            ("/", Some("localhost:4010")),
            ("https://localhost:4010/", None),
        ] {
            assert!(is_same_origin(&request(target, host, None)));
            for (origin, same) in [
                ("http://localhost:4010", true),
                ("https://localhost:4010", true),
                ("http://localhost", false),
                ("http://evil.example", false),
                ("null", false),
            ] {
                let request = request(target, host, Some(origin));
                assert_eq!(is_same_origin(&request), same, "{target} {origin}");
            }
        }
        assert!(!is_same_origin(&request(
            "/",
            None,
            Some("http://localhost")
        )));
    }
}
