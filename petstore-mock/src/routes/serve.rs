//! From an operation to what answers it. By hand, because this is the path that everything takes.

use axum::BoxError;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Body;

use super::{
    create_pet::create_pet, deprecation::deprecated, fallback::refusal, get_pet::get_pet,
    list_orders::list_orders, list_pets::list_pets,
};
use crate::{error::ApiError, extract::Visit, operation::Operation, world::World};

/// Answers a request that adds a pet.
pub(crate) async fn add<B>(world: &World, visit: Visit, request: Request<B>) -> Response<Bytes>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    create_pet(world, visit, request).await.unwrap_or_else(ApiError::into_answer)
}

/// Answers any other request to the service, or to what it does not have: without waiting for anything.
pub(crate) fn look<B>(
    world: &World,
    visit: Visit,
    operation: Option<Operation>,
    request: &Request<B>,
) -> Response<Bytes> {
    let uri = request.uri();
    let answer = match operation {
        Some(Operation::ListPets) => list_pets(world, visit, uri.query().unwrap_or("")),
        Some(Operation::GetPet) => get_pet(world, visit, uri.path()),
        Some(Operation::ListOrders) => list_orders(world, visit),
        Some(Operation::CreatePet) | None => Err(refusal(visit, request.method(), uri.path())),
    };
    let answer = answer.unwrap_or_else(ApiError::into_answer);
    if operation == Some(Operation::GetPet) { deprecated(answer) } else { answer }
}
