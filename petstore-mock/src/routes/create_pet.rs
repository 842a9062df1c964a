//! `POST /pets`: adds an animal (specification, section 4.2).

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::{HeaderValue, StatusCode, header::LOCATION};

use super::json;
use crate::{
    error::ApiError,
    extract::{Authorized, NewPetBody},
    store::OutOfIds,
    world::World,
};

/// Answers the pet with the id it was given, and where it is found.
pub(crate) async fn create_pet(
    _: Authorized,
    State(world): State<Arc<World>>,
    NewPetBody(pet): NewPetBody,
) -> Result<Response, ApiError> {
    let added = world.add(pet, |pet| (pet.id, json(StatusCode::CREATED, pet)));
    let (id, response) = added.map_err(|OutOfIds| {
        ApiError::internal("no id is left: seed the mock with pets of lower ids")
    })?;
    let mut response = response?;
    let location = HeaderValue::try_from(format!("/v1/pets/{id}"))
        .map_err(|_| ApiError::internal("the place of the new pet is no header"))?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}
