//! What administration is sent: JSON, whatever media type it is said to be, so that a plain `curl -d`
//! will do. Pages of other sites are kept out by the guard.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{FromRequest, Request},
    response::Response,
};
use bytes::Bytes;
use http::StatusCode;
use serde::de::DeserializeOwned;

use crate::{
    clock,
    http::{
        body::{read_body, utf8},
        error::{ApiError, ErrorCode},
    },
    state::AppState,
};

/// A body of whatever media type.
#[derive(Debug)]
pub(super) struct AdminBody(Bytes);

impl AdminBody {
    pub(super) fn text(&self) -> Result<&str, ApiError> {
        utf8(&self.0)
    }
}

impl FromRequest<Arc<AppState>> for AdminBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<AppState>) -> Result<Self, ApiError> {
        read_body(request.into_body(), app.settings().admin_body).await.map(Self)
    }
}

/// Reads an object; `example` shows what it may look like.
pub(super) fn read<T: DeserializeOwned>(body: &AdminBody, example: &str) -> Result<T, ApiError> {
    let text = body.text()?;
    // Derived, a struct would be read from an array of its fields too.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(invalid(format!("the body must be one JSON object, such as {example}")));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| match error.path().to_string().as_str() {
            "." | "?" => error.inner().to_string(),
            path => format!("`{path}`: {}", error.inner()),
        })
        .and_then(|value| deserializer.end().map(|()| value).map_err(|error| error.to_string()))
        .map_err(|what| invalid(format!("invalid body: {what}; send {example}")))
}

/// Reads a length of time.
pub(super) fn time(seconds: f64) -> Result<Duration, ApiError> {
    let error = "`seconds` must be a number from 0 to 253402300799";
    clock::time(seconds).ok_or_else(|| invalid(error.to_owned()))
}

/// The body can be read, but not be carried out.
pub(super) fn conflict(message: String) -> ApiError {
    ApiError::new(ErrorCode::Conflict, message)
}

pub(super) fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidBody, message)
}

/// Nothing of that kind has the number or name; `list` shows those there are.
pub(super) fn not_found(kind: &str, list: &str) -> ApiError {
    ApiError::new(
        ErrorCode::RouteNotFound,
        format!("there is no such {kind}: {list} lists those there are"),
    )
}

pub(super) fn no_content() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
