//! `GET /_mock/health`: whether the mock answers, for whoever waits for it to start.

use axum::response::Response;
use http::StatusCode;
use serde_json::json;

use crate::{error::ApiError, routes};

/// Answers that all is well.
pub(crate) async fn health() -> Result<Response, ApiError> {
    routes::json(StatusCode::OK, &json!({"status": "ok"}))
}
