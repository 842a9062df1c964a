//! `POST /pets`: adds an animal (specification, section 4.2).

use axum::BoxError;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header::LOCATION};
use hyper::body::Body;

use super::answer;
use crate::{
    error::{ApiError, ErrorCode},
    extract::{Visit, new_pet},
    journal::AddedPet,
    store::ChangeError,
    world::World,
};

/// Answers the pet with the id it was given, and where it is found.
pub(super) async fn create_pet<B>(
    world: &World,
    visit: Visit,
    request: Request<B>,
) -> Result<Response<Bytes>, ApiError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    visit.authorize()?;
    let pet = new_pet(request).await?;
    let added = world.add(pet, |pet| (pet.id, pet.json().clone())).await;
    let unmade = |error: ChangeError| ApiError::new(ErrorCode::InternalError, error.to_string());
    let (id, json) = added.map_err(unmade)?;
    let mut response = answer(StatusCode::CREATED, json);
    let location = HeaderValue::try_from(format!("/v1/pets/{id}"))
        .map_err(|_| ApiError::internal("the place of the new pet is no header"))?;
    response.headers_mut().insert(LOCATION, location);
    response.extensions_mut().insert(AddedPet(id));
    Ok(response)
}
