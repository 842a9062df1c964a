//! Access control of the administration: requests from this machine and its own pages, or with the
//! admin token.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Extension, Request, State},
    middleware::Next,
    response::Response,
};
use http::{
    HeaderMap, HeaderValue,
    header::{HOST, ORIGIN},
    uri::Authority,
};

use crate::{
    http::{
        admission::RequestContext,
        credentials::bearer,
        error::{ApiError, ErrorCode},
    },
    state::AppState,
};

/// RFC 6750, section 3.
const CHALLENGE: &str = "Bearer realm=\"petstore-mock\"";

/// Lets a request through to its handler, or refuses it.
pub(super) async fn guard(
    Extension(context): Extension<RequestContext>,
    State(app): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let headers = request.headers();
    let token = app.settings.admin_token.as_deref();
    let has_token = |token| bearer(headers).is_ok_and(|sent| token_matches(token, sent));
    let is_local = context.peer.to_canonical().is_loopback();
    if (is_local && names_this_machine(headers) && is_same_origin(headers))
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

/// Constant time, so that the token cannot be guessed byte by byte.
fn token_matches(token: &str, sent: &str) -> bool {
    let differences = token
        .bytes()
        .zip(sent.bytes())
        .fold(0, |sum, (a, b)| sum | (a ^ b));
    token.len() == sent.len() && differences == 0
}

/// A web page can point its own host name to this machine (DNS rebinding). Its requests then have
/// no `Origin`, but they still have this name as `Host`.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else {
        // HTTP/2 has it in the target. Browsers use HTTP/2 only with TLS.
        return true;
    };
    host.to_str()
        .unwrap_or("")
        .parse::<Authority>()
        .is_ok_and(|host| {
            let name = host.host();
            let bare = name.trim_start_matches('[').trim_end_matches(']');
            name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
        })
}

/// Only browsers send `Origin`. Without this check, any web page could move the clock of a mock on
/// the visitor's machine.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN).map(HeaderValue::as_bytes) else {
        return true;
    };
    let origin = origin
        .strip_prefix(b"http://")
        .or_else(|| origin.strip_prefix(b"https://"));
    origin.is_some() && origin == headers.get(HOST).map(HeaderValue::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(http::HeaderName, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect()
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
            assert!(names_this_machine(&with(&[(HOST, host)])), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:4010",
            "x",
            "",
            "a b",
            "127.0.0.1.x",
        ] {
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
            assert_eq!(
                is_same_origin(&with(&[host.clone(), (ORIGIN, origin)])),
                same,
                "{origin}"
            );
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
