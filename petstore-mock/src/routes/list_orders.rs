//! `GET /store/orders`: stated to exist, but not shown (specification, section 4.4). So it is an
//! array of whatever objects were seeded.

use bytes::Bytes;
use http::{Response, StatusCode};

use super::{answer, rendered};
use crate::{error::ApiError, extract::Visit, world::World};

/// Answers the orders of the seed.
pub(super) fn list_orders(world: &World, visit: Visit) -> Result<Response<Bytes>, ApiError> {
    visit.authorize()?;
    world.read(|store| rendered(&store.orders())).map(|json| answer(StatusCode::OK, json))
}
