//! `/_mock/faults`: what goes wrong on purpose.

use axum::{
    extract::{Path, State},
    response::Response,
};
use http::StatusCode;
use serde_json::json;

use super::{
    body,
    reply::{no_content, not_found},
    state::Admin,
};
use crate::{error::ApiError, extract::Text, fault::Fault, routes};

/// `GET /_mock/faults`: those that are set, in order, and how often each has hit.
pub(super) async fn list(State(admin): State<Admin>) -> Result<Response, ApiError> {
    routes::json(StatusCode::OK, &admin.world().faults().list())
}

/// `POST /_mock/faults`: sets one, and answers its number.
pub(super) async fn set(State(admin): State<Admin>, text: Text) -> Result<Response, ApiError> {
    let fault: Fault = body::read(&text, "{\"effect\": {\"status\": {\"status\": 503}}}")?;
    // Nobody holds it here, so it stays until it is removed.
    let id = admin.world().faults().set(fault).detach();
    routes::json(StatusCode::CREATED, &json!({ "id": id }))
}

/// `DELETE /_mock/faults`: removes them all.
pub(super) async fn clear(State(admin): State<Admin>) -> Response {
    admin.world().faults().clear();
    no_content()
}

/// `DELETE /_mock/faults/{id}`: removes one.
pub(super) async fn remove(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let is_there = id.parse().is_ok_and(|id| admin.world().faults().remove(id));
    if !is_there {
        return Err(not_found("fault", "GET /_mock/faults"));
    }
    Ok(no_content())
}
