//! `GET /pets`: lists animals (specification, section 4.1).

use std::{cell::RefCell, fmt::Write as _};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::LINK};

use super::answer;
use crate::{
    cursor,
    error::ApiError,
    extract::{ListQuery, Visit},
    model::Pet,
    store::Store,
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
    let page = LATEST.with_borrow_mut(|latest| {
        world.read(|store| match latest {
            Some(page) if page.is_of(store, query, paging) => Ok(page.clone()),
            _ => Rendered::new(store, query, paging).inspect(|page| {
                *latest = (page.json.len() <= LONGEST_KEPT).then(|| page.clone());
            }),
        })
    })?;
    let mut response = answer(StatusCode::OK, page.json);
    if let Some(link) = page.link {
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

thread_local! {
    /// The page that this thread answered last: most likely it is asked for again.
    static LATEST: RefCell<Option<Rendered>> = const { RefCell::new(None) };
}

/// A longer page is not kept.
const LONGEST_KEPT: usize = 64 * 1024;

/// A page as it is answered.
#[derive(Clone)]
struct Rendered {
    version: u64,
    query: ListQuery,
    paging: bool,
    json: Bytes,
    link: Option<HeaderValue>,
}

impl Rendered {
    fn new(store: &Store, query: ListQuery, paging: bool) -> Result<Self, ApiError> {
        let page = store.page(query.after, query.limit, query.status);
        let last = page.pets.last().filter(|_| page.more && paging);
        let link = last.map(|last| HeaderValue::try_from(next_link(&query, last.id)));
        let link = link.transpose();
        let link =
            link.map_err(|_| ApiError::internal("the link to the next page is no header"))?;
        let json = array(&page.pets);
        Ok(Self { version: store.version(), query, paging, json, link })
    }

    fn is_of(&self, store: &Store, query: ListQuery, paging: bool) -> bool {
        self.version == store.version() && self.query == query && self.paging == paging
    }
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
