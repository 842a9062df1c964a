//! `GET /pets/{petId}`: gets an animal (specification, section 4.3), until it is removed. The headers
//! that announce the removal are left to `deprecation`.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;

use super::json;
use crate::{
    error::{ApiError, ErrorCode},
    extract::{Authorized, PetId},
    operation::REMOVAL,
    world::World,
};

/// Answers the pet or, from the removal date on, that the operation is gone.
pub(crate) async fn get_pet(
    caller: Authorized,
    State(world): State<Arc<World>>,
    id: Result<PetId, ApiError>,
) -> Result<Response, ApiError> {
    // Before the id is looked at: an operation that is gone finds nothing wrong with it.
    if caller.now >= REMOVAL {
        return Err(ApiError::new(
            ErrorCode::OperationRemoved,
            "GET /v1/pets/{petId} was removed on 5 December 2030: use GET /v1/pets with its \
             `status` filter",
        ));
    }
    let id = id?;
    let found = world.read(|store| store.get(id.0).map(|pet| json(StatusCode::OK, pet)));
    found.unwrap_or_else(|| Err(id.not_found()))
}
