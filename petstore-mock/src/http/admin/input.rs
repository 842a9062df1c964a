//! Bodies for the administration: JSON with any content type, so that a plain `curl -d` works. This
//! is safe, because `auth` refuses pages of other origins.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use crate::{
    clock,
    http::{
        body::{ReadBody, read_object},
        error::{ApiError, ErrorCode},
    },
    state::AppState,
};

/// The maximum size of a body for the administration: 16 MiB.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A body with any content type.
pub(super) struct AdminBody(pub(super) Vec<u8>);

impl FromRequest<Arc<AppState>> for AdminBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &Arc<AppState>) -> Result<Self, ApiError> {
        let body = ReadBody::new(request.into_body(), MAX_BODY_BYTES).await;
        body.whole().map(Self)
    }
}

impl AdminBody {
    /// Parses an object. Errors contain `example`.
    pub(super) fn read<T: DeserializeOwned>(&self, example: &str) -> Result<T, ApiError> {
        read_object(&self.0, example)
    }

    /// Parses an object with one field. Errors contain `example`.
    pub(super) fn field<T: DeserializeOwned>(
        &self,
        name: &str,
        example: &str,
    ) -> Result<T, ApiError> {
        let mut fields: BTreeMap<String, T> = self.read(example)?;
        match (fields.remove(name), fields.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(invalid(format!(
                "the body has the field `{name}` only: send {example}"
            ))),
        }
    }

    /// Parses an object with a number of seconds.
    pub(super) fn seconds(&self, example: &str) -> Result<Duration, ApiError> {
        let error = || invalid("`seconds` must be a number from 0 to 253402300799");
        clock::time(self.field("seconds", example)?).ok_or_else(error)
    }
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
