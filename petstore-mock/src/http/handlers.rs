//! The handlers of the four operations (specification, section 4) and of unknown paths.

use std::{cell::RefCell, fmt::Write as _, sync::Arc};

use axum::{
    extract::{Extension, Request, State},
    response::Response,
};
use bytes::Bytes;
use http::{
    HeaderValue, Method, StatusCode, Uri,
    header::{LINK, LOCATION},
    uri::Authority,
};

use super::{
    admission::{ApiKey, RequestContext},
    body::{MAX_BODY_BYTES, check_is_json, json, json_response, read_body, to_json},
    error::{ApiError, ErrorCode},
    new_pet,
    params::{ListQuery, cursor, pet_id, pet_not_found},
};
use crate::{
    journal::AddedPet,
    operation::{Operation, REMOVAL},
    state::{AppState, Store},
};

type Outcome = Result<Response, ApiError>;

/// `GET /pets`: a page of pets with a link to the next page, if any.
pub(crate) async fn list_pets(key: ApiKey, State(app): State<Arc<AppState>>, uri: Uri) -> Outcome {
    let paging = app.settings().paging;
    let query = ListQuery::read(uri.query().unwrap_or(""), paging)?;
    let page = LATEST.with_borrow_mut(|latest| {
        app.read(key.number(), |store| match latest {
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
pub(crate) async fn create_pet(
    key: ApiKey,
    State(app): State<Arc<AppState>>,
    request: Request,
) -> Outcome {
    check_is_json(request.headers())?;
    let body = read_body(request.into_body(), MAX_BODY_BYTES).await?;
    let pet =
        new_pet::read(&body).map_err(|problem| ApiError::new(ErrorCode::InvalidBody, problem))?;
    let (id, json) = app.add(key.number(), pet).await?;
    let mut response = json_response(StatusCode::CREATED, json);
    let location = HeaderValue::try_from(format!("/v1/pets/{id}")).expect("the path is ASCII");
    response.headers_mut().insert(LOCATION, location);
    response.extensions_mut().insert(AddedPet(id));
    Ok(response)
}

/// `GET /pets/{petId}`: a pet or, from the removal date on, 410.
pub(crate) async fn get_pet(
    key: ApiKey,
    State(app): State<Arc<AppState>>,
    Extension(context): Extension<RequestContext>,
    uri: Uri,
) -> Outcome {
    // This comes before the id is parsed, because a removed operation does not validate it.
    if context.now >= REMOVAL {
        return Err(ApiError::new(
            ErrorCode::OperationRemoved,
            "GET /v1/pets/{petId} was removed on 5 December 2030: use GET /v1/pets with its \
             `status` filter",
        ));
    }
    let id = pet_id(uri.path())?;
    let found = app
        .pet_json(key.number(), id)
        .map(|json| json_response(StatusCode::OK, json));
    found.ok_or_else(|| pet_not_found(&id.to_string()))
}

/// `GET /store/orders`: returns the seeded objects, because the specification only names the
/// operation (section 4.4).
pub(crate) async fn list_orders(key: ApiKey, State(app): State<Arc<AppState>>) -> Outcome {
    app.read(key.number(), |store| json(StatusCode::OK, &store.orders()))
}

/// Unknown paths.
pub(crate) async fn not_found(method: Method, uri: Uri) -> ApiError {
    let host = uri.authority().filter(|_| uri.path().is_empty());
    let path = host.map_or(uri.path(), Authority::as_str);
    let described = |one: &Operation| format!("{} {}", one.method(), one.path());
    let all: Vec<_> = Operation::ALL.iter().map(described).collect();
    let overview = format!(
        "the operations are {}; the mock's own pages are under /_mock",
        all.join(", ")
    );
    let paths: Vec<_> = Operation::ALL.iter().map(|one| one.path()).collect();
    ApiError::route_not_found(&method, path, &paths, &overview)
}
