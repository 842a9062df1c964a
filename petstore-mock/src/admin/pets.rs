//! What the store holds, and putting other things into it: `/_mock/pets`, `seed`, `reset` and
//! `snapshot`.

use axum::{
    extract::{RawQuery, State},
    response::Response,
};
use http::StatusCode;
use serde_json::json;

use super::{body, query::Query, reply::no_content, state::Admin};
use crate::{
    error::{ApiError, ErrorCode},
    extract::Text,
    model::PetStatus,
    routes,
    seed::{Seed, SeedError},
    store::ChangeError,
    world::Snapshot,
};

/// How many pets are shown unless told.
const LIMIT: usize = 100;

/// `GET /_mock/pets`: a page of the pets, by id, and how many there are in all.
pub(super) async fn list(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let query = Query::read(query.as_deref(), &["after", "limit", "status"])?;
    let after = query.get::<i64>("after", "the id of a pet")?;
    let limit = query.get::<u32>("limit", "a whole number from 0 on")?;
    let limit = limit.map_or(LIMIT, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let status = query.get::<PetStatus>("status", "one of available, pending, sold")?;
    admin.world().read(|store| {
        let page = store.page(after, limit, status);
        routes::json(StatusCode::OK, &json!({ "pets": page.pets, "total": store.len() }))
    })
}

/// `POST /_mock/seed`: replaces pets and orders by those of a seed.
pub(super) async fn seed(State(admin): State<Admin>, text: Text) -> Result<Response, ApiError> {
    let wrong = |error: SeedError| {
        let message = format!("the seed is wrong: {error}");
        // What has no place in the text is no matter of its form.
        if error.line().is_some() { body::invalid(message) } else { body::conflict(message) }
    };
    let seed = Seed::from_json(text.as_str()?.as_bytes()).map_err(wrong)?;
    let store = seed.into_store().map_err(wrong)?;
    done(admin.world().replace(store).await)
}

/// `POST /_mock/reset`: everything but the clock is as at the start.
pub(super) async fn reset(State(admin): State<Admin>) -> Result<Response, ApiError> {
    done(admin.world().reset().await)
}

/// `GET /_mock/snapshot`.
pub(super) async fn snapshot(State(admin): State<Admin>) -> Result<Response, ApiError> {
    routes::json(StatusCode::OK, &admin.world().snapshot())
}

/// `PUT /_mock/snapshot`: puts back what there was.
pub(super) async fn restore(State(admin): State<Admin>, text: Text) -> Result<Response, ApiError> {
    let snapshot: Snapshot = body::read(&text, "what GET /_mock/snapshot answered")?;
    done(admin.world().restore(&snapshot).await)
}

fn done(made: Result<(), ChangeError>) -> Result<Response, ApiError> {
    made.map_err(|error| match error {
        ChangeError::Unsaved(_) => ApiError::new(ErrorCode::InternalError, error.to_string()),
        error => body::conflict(error.to_string()),
    })?;
    Ok(no_content())
}
