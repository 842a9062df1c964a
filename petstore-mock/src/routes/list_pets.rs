//! `GET /pets`: lists animals (specification, section 4.1).

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::LINK};

use super::answer;
use crate::{
    cursor,
    error::ApiError,
    extract::{ListQuery, Visit},
    model::Pet,
    world::World,
};

/// Answers a page of pets and, where more follow, a link to the next one.
pub(super) fn list_pets(
    world: &World,
    visit: Visit,
    query: &str,
) -> Result<Response<Bytes>, ApiError> {
    visit.authorize()?;
    let paging = world.settings().paging;
    let query = ListQuery::read(query, paging)?;
    let (json, next) = world.read(|store| {
        let page = store.page(query.after, query.limit, query.status);
        let last = page.pets.last().map(|pet| pet.id);
        (array(&page.pets), last.filter(|_| page.more && paging))
    });
    let mut response = answer(StatusCode::OK, json);
    if let Some(last) = next {
        let link = HeaderValue::try_from(next_link(&query, last))
            .map_err(|_| ApiError::internal("the link to the next page is no header"))?;
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

/// Strings pets together, each of which is JSON already.
fn array(pets: &[&Pet]) -> Bytes {
    let length = pets.iter().map(|pet| pet.json().len() + 1).sum::<usize>();
    let mut json = Vec::with_capacity(length + 2);
    json.push(b'[');
    for (place, pet) in pets.iter().enumerate() {
        if place > 0 {
            json.push(b',');
        }
        json.extend_from_slice(pet.json());
    }
    json.push(b']');
    json.into()
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
