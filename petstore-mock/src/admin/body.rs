//! What administration is sent: JSON, whatever media type it is said to be, so that a plain `curl -d`
//! will do. A page of another site is kept out by `access`.

use serde::de::DeserializeOwned;

use crate::{
    error::{ApiError, ErrorCode},
    extract::Text,
};

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

pub(super) fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidBody, message)
}
