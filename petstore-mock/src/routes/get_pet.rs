//! `GET /pets/{petId}`: gets an animal (specification, section 4.3), until it is removed. The headers
//! that announce the removal are left to `deprecation`.

use bytes::Bytes;
use http::{Response, StatusCode};

use super::answer;
use crate::{
    error::{ApiError, ErrorCode},
    extract::{PetId, Visit},
    operation::REMOVAL,
    world::World,
};

/// Answers the pet or, from the removal date on, that the operation is gone.
pub(super) fn get_pet(
    world: &World,
    visit: Visit,
    path: &str,
) -> Result<Response<Bytes>, ApiError> {
    visit.authorize()?;
    // Before the id is looked at: an operation that is gone finds nothing wrong with it.
    if visit.now >= REMOVAL {
        return Err(ApiError::new(
            ErrorCode::OperationRemoved,
            "GET /v1/pets/{petId} was removed on 5 December 2030: use GET /v1/pets with its \
             `status` filter",
        ));
    }
    let id = PetId::of(path)?;
    let json = world.read(|store| store.get(id.0).map(|pet| pet.json().clone()));
    json.map(|json| answer(StatusCode::OK, json)).ok_or_else(|| id.not_found())
}
