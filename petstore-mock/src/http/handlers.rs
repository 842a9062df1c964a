//! The operations (specification, section 4), and unknown paths and methods.

use std::{cell::RefCell, fmt::Write as _, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode, Uri,
    header::{LINK, LOCATION},
    request::Parts,
    uri::Authority,
};
use serde::Deserialize;

use super::{
    body::{ReadBody, check_is_json, json, json_response, read_object, to_json},
    error::{ApiError, ErrorCode},
    params::{ListQuery, cursor, pet_id},
};
use crate::{
    journal::Recording,
    model::{PetStatus, SeedPet},
    operation::{Operation, REMOVAL},
    state::{AppState, Change, ChangeError, Store},
    text::present,
};

type Outcome = Result<Response<Bytes>, ApiError>;

/// Answers a request that arrived at `now`. `key` is the number of its key.
pub(super) fn answer(
    app: &AppState,
    operation: Option<Operation>,
    now: Duration,
    key: Option<u32>,
    request: &Parts,
    body: ReadBody,
    recording: &mut Recording,
) -> Outcome {
    let Parts { method, uri, .. } = request;
    let Some(operation) = operation else {
        let route = app.settings().routes.find(method, uri.path());
        let route = route.ok_or_else(|| unknown(app, method, uri))?;
        return Ok(route.to_response());
    };
    match operation {
        Operation::ListPets => list_pets(app, key, uri),
        Operation::CreatePet => create_pet(app, key, request, body, recording),
        Operation::GetPet => get_pet(app, key, now, uri),
        Operation::ListOrders => list_orders(app, key),
    }
}

/// `GET /pets`: a page of pets with a link to the next page, if any.
fn list_pets(app: &AppState, key: Option<u32>, uri: &Uri) -> Outcome {
    let paging = app.settings().paging;
    let query = ListQuery::read(uri.query().unwrap_or(""), paging)?;
    // A change in between makes the page newer than its version, which no later request has.
    let asked = (app.version(), key, query);
    let page = LATEST.with_borrow_mut(|latest| match latest {
        Some((same, page)) if *same == asked => page.clone(),
        _ => {
            let page = app.read(key, |store| Page::new(store, &query, paging));
            latest.insert((asked, page)).1.clone()
        }
    });
    let mut response = json_response(StatusCode::OK, page.json);
    if let Some(link) = page.link {
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

/// The version of the stores, the key and the query of a page.
type Asked = (u64, Option<u32>, ListQuery);

thread_local! {
    /// The last page that this thread has sent. It will probably be requested again.
    static LATEST: RefCell<Option<(Asked, Page)>> = const { RefCell::new(None) };
}

/// A serialized page.
#[derive(Clone)]
struct Page {
    json: Bytes,
    link: Option<HeaderValue>,
}

impl Page {
    fn new(store: &Store, query: &ListQuery, paging: bool) -> Self {
        let (pets, more) = store.page(query.after, query.limit, query.status);
        let link = match pets.last() {
            Some(last) if more && paging => {
                let link = HeaderValue::try_from(next_link(query, last.id));
                Some(link.expect("the link is ASCII"))
            }
            _ => None,
        };
        let json = to_json(&pets);
        Self { json, link }
    }
}

/// Returns the link to the next page. It is relative to the origin, so that it works behind any
/// proxy that keeps the path.
fn next_link(query: &ListQuery, last: i64) -> String {
    let mut link = format!("</v1/pets?limit={}", query.limit);
    if let Some(status) = query.status {
        // Writing to a string cannot fail.
        let _ = write!(link, "&status={status}");
    }
    let _ = write!(link, "&cursor={}>; rel=\"next\"", cursor::encode(last));
    link
}

/// `POST /pets`: creates a pet, and returns it with its id and `Location`.
fn create_pet(
    app: &AppState,
    key: Option<u32>,
    request: &Parts,
    body: ReadBody,
    recording: &mut Recording,
) -> Outcome {
    check_is_json(&request.headers)?;
    let mut pet = new_pet(&body.whole()?)?;
    pet.status = pet.status.or(app.settings().default_status);
    let id = app.change(key, Change::Add(pet.clone()))?;
    recording.record().added = Some(id);
    // The store is not read again, because the pet may have been removed in the meantime.
    let mut response = json(StatusCode::CREATED, &pet.into_pet(id));
    let location = HeaderValue::try_from(format!("/v1/pets/{id}")).expect("the path is ASCII");
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// The fields of a NewPet. Others are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewPet {
    name: String,
    category_id: i64,
    #[serde(default, deserialize_with = "present")]
    status: Option<PetStatus>,
}

/// Parses a pet to create.
pub(crate) fn new_pet(body: &[u8]) -> Result<SeedPet, ApiError> {
    let pet: NewPet = read_object(body, "{\"name\": \"Rex\", \"categoryId\": 7}")?;
    Ok(SeedPet {
        id: None,
        name: pet.name,
        category_id: pet.category_id,
        status: pet.status,
    })
}

/// `GET /pets/{petId}`: a pet or, from the removal date on, 410.
fn get_pet(app: &AppState, key: Option<u32>, now: Duration, uri: &Uri) -> Outcome {
    // This comes before the id is parsed, because a removed operation does not validate it.
    if now >= REMOVAL {
        return Err(ApiError::new(
            ErrorCode::OperationRemoved,
            "GET /v1/pets/{petId} was removed on 5 December 2030: use GET /v1/pets with its \
             `status` filter",
        ));
    }
    let id = pet_id(uri.path())?;
    app.read(key, |store| match store.pet(id) {
        Some(pet) => Ok(json(StatusCode::OK, pet)),
        None => Err(ChangeError::NoSuchPet(id).into()),
    })
}

/// `GET /store/orders`: returns the seeded objects, because the specification only names the
/// operation (section 4.4).
fn list_orders(app: &AppState, key: Option<u32>) -> Outcome {
    app.read(key, |store| Ok(json(StatusCode::OK, &store.orders())))
}

/// Returns the error of a path that does not exist, or does not support the method.
fn unknown(app: &AppState, method: &Method, uri: &Uri) -> ApiError {
    let routes = &app.settings().routes;
    let mut methods = Operation::methods_of(uri.path());
    methods.extend(routes.methods_of(uri.path()).into_iter().cloned());
    if methods.contains(&Method::GET) {
        methods.push(Method::HEAD);
    }
    if !methods.is_empty() {
        let mut names: Vec<_> = methods.iter().map(Method::as_str).collect();
        names.sort_unstable();
        names.dedup();
        return ApiError::method_not_allowed(&names.join(", "));
    }
    let host = uri.authority().filter(|_| uri.path().is_empty());
    let path = host.map_or(uri.path(), Authority::as_str);
    let operations = Operation::ALL.iter();
    let described: Vec<_> = operations
        .map(|one| format!("{} {}", one.method(), one.path()))
        .chain(routes.names())
        .collect();
    let overview = format!(
        "the operations are {}; the mock's own pages are under /_mock",
        described.join(", ")
    );
    ApiError::route_not_found(method, path, &overview)
}
