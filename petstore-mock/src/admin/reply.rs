//! Answers that carry nothing of their own.

use axum::response::Response;
use http::StatusCode;

use crate::error::{ApiError, ErrorCode};

pub(super) fn no_content() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Nothing of that kind has the number or name; `list` shows those there are.
pub(super) fn not_found(kind: &str, list: &str) -> ApiError {
    ApiError::new(
        ErrorCode::RouteNotFound,
        format!("there is no such {kind}: {list} shows those there are"),
    )
}
