//! What administration is sent: JSON, whatever media type it is said to be, so that a plain `curl -d`
//! will do. A page of another site is kept out by `access`.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::state::Admin;
use crate::{
    clock,
    error::{ApiError, ErrorCode},
    extract::Text,
};

impl FromRequest<Admin> for Text {
    type Rejection = ApiError;

    async fn from_request(request: Request, admin: &Admin) -> Result<Self, ApiError> {
        Self::read(request.into_body(), admin.world().settings().admin_body).await
    }
}

/// Reads an object; `example` shows what it may look like.
pub(super) fn read<T: DeserializeOwned>(text: &Text, example: &str) -> Result<T, ApiError> {
    let text = text.as_str()?;
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
        .map_err(|what| invalid(format!("the body is not what this takes: {what}; send {example}")))
}

/// Reads a length of time.
pub(super) fn time(seconds: f64) -> Result<Duration, ApiError> {
    let error = "`seconds` must be a number from 0 to 253402300799";
    clock::time(seconds).ok_or_else(|| invalid(error.to_owned()))
}

/// What was sent can be read, but not be done.
pub(super) fn conflict(message: String) -> ApiError {
    ApiError::new(ErrorCode::Conflict, message)
}

pub(super) fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidBody, message)
}
