//! Bodies for the administration: JSON with any content type, so that a plain `curl -d` works. This
//! is safe, because `auth` refuses pages of other origins.

use std::{sync::Arc, time::Duration};

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::{
    clock,
    http::{
        body::read_body,
        error::{ApiError, ErrorCode},
    },
    state::AppState,
    text::read_json,
};

/// The maximum size of a body for the administration: 16 MiB.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A body with any content type.
#[derive(Debug)]
pub(super) struct AdminBody(pub(super) Bytes);

impl FromRequest<Arc<AppState>> for AdminBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &Arc<AppState>) -> Result<Self, ApiError> {
        read_body(request.into_body(), MAX_BODY_BYTES)
            .await
            .map(Self)
    }
}

impl AdminBody {
    /// Parses an object. Errors contain `example`.
    pub(super) fn read<T: DeserializeOwned>(&self, example: &str) -> Result<T, ApiError> {
        // A derived struct would also accept an array of its fields.
        if !self.0.trim_ascii_start().starts_with(b"{") {
            return Err(invalid(format!(
                "the body must be one JSON object, such as {example}"
            )));
        }
        read_json(&self.0).map_err(|what| invalid(format!("invalid body: {what}; send {example}")))
    }
}

/// Parses a duration.
pub(super) fn time(seconds: f64) -> Result<Duration, ApiError> {
    let error = || invalid("`seconds` must be a number from 0 to 253402300799");
    clock::time(seconds).ok_or_else(error)
}

/// The body is valid, but conflicts with the state.
pub(super) fn conflict(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::Conflict, message.into())
}

pub(super) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidBody, message.into())
}

/// No item has this number or name. `list` names the path that lists all.
pub(super) fn not_found(kind: &str, list: &str) -> ApiError {
    ApiError::new(
        ErrorCode::RouteNotFound,
        format!("no such {kind}: {list} lists all"),
    )
}
