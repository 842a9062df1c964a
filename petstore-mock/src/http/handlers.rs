//! The operations (specification, section 4), and unknown paths and methods.

use std::{cell::RefCell, fmt::Write as _, time::Duration};

use axum::extract::Request;
use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode, Uri,
    header::{LINK, LOCATION},
    uri::Authority,
};

use super::{
    body::{MAX_BODY_BYTES, check_is_json, json, json_response, read_body, to_json},
    error::{ApiError, ErrorCode},
    new_pet,
    params::{ListQuery, cursor, pet_id},
};
use crate::{
    journal::AddedPet,
    operation::{Operation, REMOVAL},
    state::{AppState, Change, ChangeError, Store},
};

type Outcome = Result<Response<Bytes>, ApiError>;

/// The number of a key, or why it is refused. `None` for requests that need none.
pub(super) type CheckedKey = Result<Option<u32>, ApiError>;

/// Answers a request that arrived at `now`. Errors of its path and method come before those of its
/// key.
pub(super) async fn answer(
    app: &AppState,
    operation: Option<Operation>,
    now: Duration,
    key: CheckedKey,
    request: Request,
) -> Outcome {
    let Some(operation) = operation else {
        let route = app
            .settings()
            .routes
            .find(request.method(), request.uri().path());
        let route = route.ok_or_else(|| unknown(app, request.method(), request.uri()))?;
        return key.map(|_| route.to_response());
    };
    let key = key?;
    match operation {
        Operation::ListPets => list_pets(app, key, request.uri()),
        Operation::CreatePet => create_pet(app, key, request).await,
        Operation::GetPet => get_pet(app, key, now, request.uri()),
        Operation::ListOrders => list_orders(app, key),
    }
}

/// `GET /pets`: a page of pets with a link to the next page, if any.
fn list_pets(app: &AppState, key: Option<u32>, uri: &Uri) -> Outcome {
    let paging = app.settings().paging;
    let query = ListQuery::read(uri.query().unwrap_or(""), paging)?;
    let page = LATEST.with_borrow_mut(|latest| {
        app.read(key, |store| match latest {
            Some(page) if (page.version, page.query) == (store.version(), query) => {
                Ok(page.clone())
            }
            _ => CachedPage::new(store, query, paging).inspect(|page| {
                *latest = (page.json.len() <= MAX_CACHED_BYTES).then(|| page.clone());
            }),
        })
    })?;
    let mut response = json_response(StatusCode::OK, page.json);
    if let Some(link) = page.link {
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

thread_local! {
    /// The last page that this thread has sent. It will probably be requested again.
    static LATEST: RefCell<Option<CachedPage>> = const { RefCell::new(None) };
}

/// Longer pages are not cached.
const MAX_CACHED_BYTES: usize = 64 * 1024;

/// A serialized page.
#[derive(Clone)]
struct CachedPage {
    version: u64,
    query: ListQuery,
    json: Bytes,
    link: Option<HeaderValue>,
}

impl CachedPage {
    fn new(store: &Store, query: ListQuery, paging: bool) -> Result<Self, ApiError> {
        let page = store.page(query.after, query.limit, query.status);
        let link = match page.id_before_next() {
            Some(last) if paging => {
                let link = HeaderValue::try_from(next_link(&query, last));
                Some(link.expect("the link is ASCII"))
            }
            _ => None,
        };
        let json = to_json(&page.pets())?;
        Ok(Self {
            version: store.version(),
            query,
            json,
            link,
        })
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
async fn create_pet(app: &AppState, key: Option<u32>, request: Request) -> Outcome {
    check_is_json(request.headers())?;
    let body = read_body(request.into_body(), MAX_BODY_BYTES).await?;
    let mut pet =
        new_pet::read(&body).map_err(|problem| ApiError::new(ErrorCode::InvalidBody, problem))?;
    pet.status = pet.status.or(app.settings().default_status);
    let id = app.change(key, Change::Add(pet))?;
    // The pet may have been removed in the meantime.
    let json = pet_json(app, key, id)?;
    let mut response = json_response(StatusCode::CREATED, json);
    let location = HeaderValue::try_from(format!("/v1/pets/{id}")).expect("the path is ASCII");
    response.headers_mut().insert(LOCATION, location);
    response.extensions_mut().insert(AddedPet(id));
    Ok(response)
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
    let json = pet_json(app, key, id)?;
    Ok(json_response(StatusCode::OK, json))
}

fn pet_json(app: &AppState, key: Option<u32>, id: i64) -> Result<Bytes, ApiError> {
    app.read(key, |store| match store.pet(id) {
        Some(pet) => to_json(pet),
        None => Err(ChangeError::NoSuchPet(id).into()),
    })
}

/// `GET /store/orders`: returns the seeded objects, because the specification only names the
/// operation (section 4.4).
fn list_orders(app: &AppState, key: Option<u32>) -> Outcome {
    app.read(key, |store| json(StatusCode::OK, &store.orders()))
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
        return ApiError::method_not_allowed(&names.join(", "));
    }
    let host = uri.authority().filter(|_| uri.path().is_empty());
    let path = host.map_or(uri.path(), Authority::as_str);
    let described = |one: &Operation| format!("{} {}", one.method(), one.path());
    let all: Vec<_> = Operation::ALL.iter().map(described).collect();
    let overview = format!(
        "the operations are {}; the mock's own pages are under /_mock",
        all.join(", ")
    );
    let paths = Operation::ALL.iter().map(|one| one.path());
    let paths: Vec<_> = paths.chain(routes.paths()).collect();
    ApiError::route_not_found(method, path, &paths, &overview)
}
