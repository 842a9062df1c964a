//! A successful answer: JSON, rendered already. Errors are left to `error`.

use axum::{body::Body, response};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;

use crate::error::{ApiError, JSON};

/// As many as most answers have, so that they are not moved when more are added.
const FIELDS: usize = 6;

/// Returns an answer with this body.
pub(super) fn answer(status: StatusCode, json: Bytes) -> Response<Bytes> {
    let mut response = Response::new(json);
    *response.status_mut() = status;
    *response.headers_mut() = HeaderMap::with_capacity(FIELDS);
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Returns a value as JSON.
pub(super) fn rendered(value: &impl Serialize) -> Result<Bytes, ApiError> {
    let json = serde_json::to_vec(value)
        .map_err(|_| ApiError::internal("the answer could not be written as JSON"))?;
    Ok(json.into())
}

/// Returns an answer with this value as its body, for what is routed by axum.
pub(crate) fn json(
    status: StatusCode,
    value: &impl Serialize,
) -> Result<response::Response, ApiError> {
    rendered(value).map(|json| answer(status, json).map(Body::from))
}
