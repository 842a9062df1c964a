//! A successful answer: JSON, rendered already. Errors are left to `error`.

use axum::{body::Body, response::Response};
use http::{StatusCode, header::CONTENT_TYPE};
use serde::Serialize;

use crate::error::{ApiError, JSON};

/// Returns an answer with this value as its body.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(value)
        .map_err(|_| ApiError::internal("the answer could not be written as JSON"))?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    Ok(response)
}
