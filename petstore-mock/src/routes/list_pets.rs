//! `GET /pets`: lists animals (specification, section 4.1).

use std::{fmt::Write as _, sync::Arc};

use axum::{extract::State, response::Response};
use http::{HeaderValue, StatusCode, header::LINK};

use super::json;
use crate::{
    cursor,
    error::ApiError,
    extract::{Authorized, ListQuery},
    world::World,
};

/// Answers a page of pets and, where more follow, a link to the next one.
pub(crate) async fn list_pets(
    _: Authorized,
    query: ListQuery,
    State(world): State<Arc<World>>,
) -> Result<Response, ApiError> {
    let (response, next) = world.read(|store| {
        let page = store.page(query.after, query.limit, query.status);
        let last = page.pets.last().map(|pet| pet.id);
        let next = last.filter(|_| page.more);
        (json(StatusCode::OK, &page.pets), next)
    });
    let mut response = response?;
    if let Some(last) = next.filter(|_| world.settings().paging) {
        let link = HeaderValue::try_from(next_link(&query, last))
            .map_err(|_| ApiError::internal("the link to the next page is no header"))?;
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

/// The target is relative to the origin, so it is right behind any proxy that keeps the path.
fn next_link(query: &ListQuery, last: i64) -> String {
    let mut link = format!("</v1/pets?limit={}", query.limit);
    if let Some(status) = query.status {
        // Writing to a string does not fail.
        let _ = write!(link, "&status={status}");
    }
    let _ = write!(link, "&cursor={}>; rel=\"next\"", cursor::encode(last));
    link
}
