//! `GET /store/orders`: stated to exist, but not shown (specification, section 4.4). So it is an
//! array of whatever objects were seeded.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;

use super::json;
use crate::{error::ApiError, extract::Authorized, world::World};

/// Answers the orders of the seed.
pub(crate) async fn list_orders(
    _: Authorized,
    State(world): State<Arc<World>>,
) -> Result<Response, ApiError> {
    world.read(|store| json(StatusCode::OK, &store.orders()))
}
