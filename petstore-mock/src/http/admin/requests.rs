//! `/_mock/requests`: what was asked and answered lately, and forgetting it.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, State},
    response::Response,
};
use http::{Method, StatusCode};

use super::input::no_content;
use crate::{
    http::{body::json, error::ApiError, params::Query},
    operation::Operation,
    pattern::Pattern,
    state::AppState,
};

/// How many exchanges are shown unless told.
const LIMIT: usize = 200;

/// `GET /_mock/requests`: the latest exchanges that the journal still has, by number.
pub(super) async fn list(
    State(app): State<Arc<AppState>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let known = ["after", "key", "limit", "method", "operation", "path", "status"];
    let query = Query(query.as_deref().unwrap_or("")).only(&known)?;
    let whole = "a whole number from 0 on";
    let operation = "one of listPets, createPet, getPet, listOrders";
    let mut pattern =
        query.get::<Operation>("operation", operation)?.map_or_else(Pattern::any, Pattern::from);
    if let Some(method) = query.get::<Method>("method", "a method")? {
        pattern = pattern.method(method);
    }
    if let Some(path) = query.get::<String>("path", "a path")? {
        pattern = pattern.path(path);
    }
    if let Some(status) = query.get::<u16>("status", "a status such as 404")? {
        pattern = pattern.status(status);
    }
    let after = query.get::<u64>("after", whole)?.unwrap_or(0);
    let key = query.get::<u32>("key", "the number of a key")?;
    let limit = query.get::<u32>("limit", whole)?;
    let limit = limit.map_or(LIMIT, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let latest = app.journal().latest(&pattern, limit, |record| {
        record.number > after
            && key
                .is_none_or(|key| record.arrival.key.as_ref().is_some_and(|it| it.number() == key))
    });
    json(StatusCode::OK, &latest)
}

/// `DELETE /_mock/requests`: forgets them all.
pub(super) async fn clear(State(app): State<Arc<AppState>>) -> Response {
    app.forget();
    no_content()
}
