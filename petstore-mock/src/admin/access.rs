//! Who may administer the mock: whoever is on this machine and no page of another site, or whoever has
//! the token, if one is set.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{
    HeaderMap,
    header::{HOST, ORIGIN},
};

use crate::{
    error::{ApiError, ErrorCode},
    extract::{Visit, bearer},
    world::World,
};

/// RFC 6750, section 3.
const CHALLENGE: &str = "Bearer realm=\"petstore-mock\"";

/// Lets a request through to its handler, or refuses it.
pub(super) async fn guard(
    visit: Visit,
    State(world): State<Arc<World>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    visit.check()?;
    let headers = request.headers();
    let token = world.settings().admin_token.as_ref();
    let has_token = |token| bearer(headers).is_ok_and(|sent| token_matches(token, sent));
    let is_local = visit.peer.to_canonical().is_loopback();
    if (is_local && names_this_machine(headers) && is_same_origin(headers))
        || token.is_some_and(|token| has_token(token.reveal()))
    {
        return Ok(next.run(request).await);
    }
    Err(match token {
        Some(_) => ApiError::unauthorized(
            "the mock is administered from its own machine, or with its token: send it as \
             `Authorization: Bearer TOKEN`",
            CHALLENGE,
        ),
        None => ApiError::new(
            ErrorCode::RouteNotFound,
            "administration is there for the mock's own machine only, and for no page of another \
             site; start the mock with an admin token (--admin-token-file) to use it from elsewhere",
        ),
    })
}

/// Takes as long whatever is wrong, so that nobody can find the token letter by letter.
fn token_matches(token: &str, sent: &str) -> bool {
    let differences = token.bytes().zip(sent.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    token.len() == sent.len() && differences == 0
}

/// A page of another site can have its own name lead to this machine (DNS rebinding), and then asks
/// without an `Origin`; but its requests still bear that name.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else {
        // HTTP/2 has it in the target; no browser speaks that without TLS.
        return true;
    };
    let host = host.to_str().unwrap_or("").parse::<http::uri::Authority>();
    host.is_ok_and(|host| {
        let name = host.host();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok()
    })
}

/// Only browsers send `Origin`; without this check any page could move the clock of a mock that runs
/// on its reader's machine.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let origin = origin.as_bytes();
    let origin = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    origin.is_some() && origin == headers.get(HOST).map(http::HeaderValue::as_bytes)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(pairs: &[(http::HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn only_names_that_nobody_else_can_give_are_this_machines() {
        for host in ["localhost", "LocalHost:4010", "127.0.0.1:4010", "[::1]:4010", "192.0.2.1"] {
            assert!(names_this_machine(&with(&[(HOST, host)])), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:4010", "x", "", "a b", "127.0.0.1.x"] {
            assert!(!names_this_machine(&with(&[(HOST, host)])), "{host}");
        }
    }

    #[test]
    fn an_origin_must_be_the_host_itself() {
        let host = (HOST, "localhost:4010");
        assert!(is_same_origin(&with(std::slice::from_ref(&host))));
        for (origin, same) in [
            ("http://localhost:4010", true),
            ("https://localhost:4010", true),
            ("http://localhost", false),
            ("http://evil.example", false),
            ("null", false),
        ] {
            assert_eq!(is_same_origin(&with(&[host.clone(), (ORIGIN, origin)])), same, "{origin}");
        }
    }

    #[test]
    fn a_token_matches_itself_only() {
        assert!(token_matches("t0ken", "t0ken"));
        for sent in ["", "t0ke", "t0kenn", "T0ken", "xxxxx"] {
            assert!(!token_matches("t0ken", sent), "{sent}");
        }
    }
}
