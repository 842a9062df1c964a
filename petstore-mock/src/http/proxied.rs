//! Requests that are forwarded to a real service.

use axum::{body::Body, extract::Request};
use bytes::Bytes;
use http::{Response, StatusCode, header::DATE};
use serde_json::Value;

use super::{
    common_headers,
    error::{ApiError, ErrorCode},
};
use crate::{
    exchange::Admission,
    journal::Recording,
    operation::Operation,
    proxy::{Sent, Upstream, UpstreamError},
    state::AppState,
};

/// Forwards a request. Returns the response. If its body is long or slow, also returns the whole
/// body as a stream.
pub(super) async fn forward(
    app: &AppState,
    upstream: &Upstream,
    operation: Option<Operation>,
    request: Request,
    recording: &mut Recording,
) -> (Response<Bytes>, Option<Body>) {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let answer = match upstream.forward(request).await {
        Ok(answer) => answer,
        Err(error) => return (failure(&error).to_response(), None),
    };
    let (parts, body) = answer.response.into_parts();
    let head = Response::from_parts(parts.clone(), ());
    let added = added(operation, &head, &body);
    recording.update(|record| {
        if head.status() == StatusCode::TOO_MANY_REQUESTS {
            record.arrival.admission = Admission::Refused;
        }
        record.added = added;
    });
    if let Some(operation) = operation {
        let sent_body = recording.sent_body();
        let sent = Sent::new(recording.number(), operation, &method, &uri, &sent_body);
        let whole = if answer.stream.is_none() {
            Some(&*body)
        } else {
            None
        };
        app.service().observe(&sent, &head, whole);
    }
    let mut response = Response::from_parts(parts, body);
    if !response.headers().contains_key(DATE) {
        // RFC 9110, section 6.6.1: who forwards a response without a `Date` adds one.
        let now = app.clock().since_epoch();
        common_headers::add(response.headers_mut(), now, None, None);
    }
    (response, answer.stream)
}

/// Returns the id of the created pet, according to the response.
fn added(operation: Option<Operation>, head: &Response<()>, body: &[u8]) -> Option<i64> {
    if operation != Some(Operation::CreatePet) || head.status() != StatusCode::CREATED {
        return None;
    }
    serde_json::from_slice::<Value>(body).ok()?["id"].as_i64()
}

fn failure(error: &UpstreamError) -> ApiError {
    let code = match error {
        UpstreamError::Unreachable(_) => ErrorCode::BadGateway,
        UpstreamError::Timeout(_) => ErrorCode::GatewayTimeout,
    };
    ApiError::new(code, error.to_string())
}
