//! What the mock holds, and changing it: `/_mock/pets`, `seed`, `reset`, `snapshot` and `faults`; and
//! whether it is ready.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::Body,
    extract::{Path, RawQuery, State},
    response::Response,
};
use futures_util::stream;
use http::{StatusCode, header::CONTENT_TYPE};
use serde_json::json;

use super::input::{self, AdminBody, no_content, not_found};
use crate::{
    fault::Fault,
    http::{
        body,
        error::{ApiError, ErrorCode, JSON},
        params::Query,
    },
    model::PetStatus,
    state::{AppState, ChangeError, Snapshot},
    state::{Seed, SeedError},
};

/// How many pets are listed unless set.
const DEFAULT_LIMIT: usize = 100;

type Outcome = Result<Response, ApiError>;

/// `GET /_mock/health`: the mock serves.
pub(super) async fn health() -> Outcome {
    body::json(StatusCode::OK, &json!({"status": "ok"}))
}

/// `GET /_mock/ready`: it can make changes, too.
pub(super) async fn ready(State(app): State<Arc<AppState>>) -> Outcome {
    if app.is_ready().await {
        return health().await;
    }
    let message = "the data file can't be written: see that its disk has room";
    Err(ApiError::new(ErrorCode::InsufficientStorage, message))
}

/// `GET /_mock/pets`: a page of the pets, by id, and how many there are in all.
pub(super) async fn pets(State(app): State<Arc<AppState>>, RawQuery(query): RawQuery) -> Outcome {
    let query = Query(query.as_deref().unwrap_or("")).only(&["after", "limit", "status"])?;
    let after = query.get::<i64>("after", "the id of a pet")?;
    let limit = query.get::<u32>("limit", "a whole number from 0 on")?;
    let limit = limit.map_or(DEFAULT_LIMIT, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let status = query.get::<PetStatus>("status", "one of available, pending, sold")?;
    app.read(|store| {
        let page = store.page(after, limit, status);
        body::json(StatusCode::OK, &json!({ "pets": page.pets, "total": store.len() }))
    })
}

/// `POST /_mock/seed`: replaces pets and orders by those of a seed.
pub(super) async fn seed(State(app): State<Arc<AppState>>, body: AdminBody) -> Outcome {
    let wrong = |error: SeedError| {
        let message = format!("the seed is wrong: {error}");
        // An error without a place in the text is not one of its form.
        if error.line().is_some() { input::invalid(message) } else { input::conflict(message) }
    };
    let read = move || {
        let seed = Seed::from_json(body.text()?.as_bytes()).map_err(wrong)?;
        seed.into_store().map_err(wrong)
    };
    let store = aside(read).await?;
    done(app.replace(store).await)
}

/// Reads what may be long on a thread for that, so that no other request waits.
async fn aside<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| Err(ApiError::panicked()))
}

/// `POST /_mock/reset`: everything but the clock is as at the start.
pub(super) async fn reset(State(app): State<Arc<AppState>>) -> Outcome {
    done(app.reset().await)
}

/// `GET /_mock/snapshot`.
pub(super) async fn snapshot(State(app): State<Arc<AppState>>) -> Outcome {
    let pieces = stream::iter(app.snapshot().into_json_pieces().map(Ok::<_, Infallible>));
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    Ok(response)
}

/// `PUT /_mock/snapshot`: restores what there was.
pub(super) async fn restore(State(app): State<Arc<AppState>>, body: AdminBody) -> Outcome {
    let read = move || input::read::<Snapshot>(&body, "what GET /_mock/snapshot answered");
    let snapshot = aside(read).await?;
    done(app.restore(&snapshot).await)
}

fn done(made: Result<(), ChangeError>) -> Outcome {
    made?;
    Ok(no_content())
}

/// `GET /_mock/faults`: those that are set, in order, and how often each has hit.
pub(super) async fn faults(State(app): State<Arc<AppState>>) -> Outcome {
    body::json(StatusCode::OK, &app.faults().list())
}

/// `POST /_mock/faults`: sets one, and answers its number.
pub(super) async fn set_fault(State(app): State<Arc<AppState>>, body: AdminBody) -> Outcome {
    let fault: Fault = input::read(&body, "{\"effect\": {\"status\": 503}}")?;
    // Nobody holds it here, so it stays until it is removed.
    let id = app.faults().set(fault).detach();
    body::json(StatusCode::CREATED, &json!({ "id": id }))
}

/// `DELETE /_mock/faults`: removes them all.
pub(super) async fn clear_faults(State(app): State<Arc<AppState>>) -> Response {
    app.faults().clear();
    no_content()
}

/// `DELETE /_mock/faults/{id}`: removes one.
pub(super) async fn remove_fault(
    State(app): State<Arc<AppState>>,
    Path(id): Path<String>,
) -> Outcome {
    let is_there = id.parse().is_ok_and(|id| app.faults().remove(id));
    if is_there { Ok(no_content()) } else { Err(not_found("fault", "GET /_mock/faults")) }
}
