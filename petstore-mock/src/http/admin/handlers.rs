//! The handlers of the administration: health, clock, keys, faults, store, requests and report.

use std::{num::NonZeroU32, sync::Arc};

use axum::{
    extract::{Path, RawQuery, State},
    response::Response,
    routing::{MethodRouter, get},
};
use http::{Method, StatusCode};
use httpdate::HttpDate;
use serde::Deserialize;
use serde_json::json;

use super::{
    assets::{json, text},
    input::{AdminBody, conflict, invalid, not_found},
};
use crate::{
    clock::{self, Clock},
    exchange::Record,
    fault::Fault,
    http::{
        error::{ApiError, ErrorCode},
        params::Query,
    },
    model::SeedPet,
    operation::{Operation, PathTemplate},
    plan::Plan,
    report::Report,
    state::{
        AppState, Change, ChangeError, KeyError, NewKey, Seed, SeedError, Snapshot, some_senders,
    },
    text::present,
};

type App = State<Arc<AppState>>;
type Outcome = Result<Response, ApiError>;

const NO_CONTENT: StatusCode = StatusCode::NO_CONTENT;

/// `GET /_mock/health`: the mock serves, and can make changes.
pub(super) async fn health(State(app): App) -> Outcome {
    if app.stores().is_ready() {
        return Ok(json(StatusCode::OK, &json!({"status": "ok"})));
    }
    let message = "the data file cannot be written: free space on its disk";
    Err(ApiError::new(ErrorCode::InsufficientStorage, message))
}

/// `GET /_mock/ca.pem`: the certificate authority, which anyone may trust.
pub(super) async fn authority(State(app): App) -> Outcome {
    let Some(authority) = &app.settings().authority else {
        let message = "this mock serves without TLS: start it with `--tls`";
        return Err(ApiError::new(ErrorCode::RouteNotFound, message));
    };
    Ok(text("application/x-pem-file", authority.clone()))
}

/// `GET /_mock/clock`.
pub(super) async fn clock(State(app): App) -> Response {
    show(app.clock())
}

fn show(clock: &Clock) -> Response {
    let now = clock.since_epoch().as_secs_f64();
    let date = HttpDate::from(clock.now()).to_string();
    let is_frozen = clock.is_frozen();
    json(
        StatusCode::OK,
        &json!({"now": now, "date": date, "frozen": is_frozen}),
    )
}

/// `POST /_mock/clock/advance`.
pub(super) async fn advance_clock(State(app): App, body: AdminBody) -> Outcome {
    app.clock().advance(body.seconds("{\"seconds\": 60}")?);
    Ok(show(app.clock()))
}

/// `POST /_mock/clock/freeze`.
pub(super) async fn freeze_clock(State(app): App) -> Response {
    app.clock().freeze();
    show(app.clock())
}

/// `POST /_mock/clock/resume`.
pub(super) async fn resume_clock(State(app): App) -> Response {
    app.clock().resume();
    show(app.clock())
}

/// `POST /_mock/clock/set`.
pub(super) async fn set_clock(State(app): App, body: AdminBody) -> Outcome {
    let now: String = body.field("now", "{\"now\": \"2030-12-05T00:00:00Z\"}")?;
    let at = clock::parse_date(&now).map_err(|error| invalid(format!("`now`: {error}")))?;
    if at < app.clock().now() {
        let date = HttpDate::from(app.clock().now());
        return Err(conflict(format!(
            "the clock never goes back, and it is {date} already: start the mock with --start-at"
        )));
    }
    app.clock().advance_to(at);
    Ok(show(app.clock()))
}

/// `GET /_mock/keys`.
pub(super) async fn keys(State(app): App) -> Response {
    json(StatusCode::OK, &app.usage())
}

/// `POST /_mock/keys`: adds a key. Without a key in the body, creates one; only this response
/// contains it.
pub(super) async fn add_key(State(app): App, body: AdminBody) -> Outcome {
    let new: NewKey = body.read("{\"plan\": \"free\"}")?;
    let added = app.add_key(&new);
    let (key, id) = added.map_err(|error| match error {
        KeyError::Taken | KeyError::NameTaken => conflict(error.to_string()),
        KeyError::Unsendable | KeyError::Name => invalid(error.to_string()),
    })?;
    let added = match new.key() {
        Some(_) => json!({"id": id}),
        None => json!({"id": id, "key": key}),
    };
    Ok(json(StatusCode::CREATED, &added))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyChange {
    #[serde(default, deserialize_with = "present")]
    plan: Option<Plan>,
    #[serde(default, deserialize_with = "some_senders")]
    senders: Option<NonZeroU32>,
}

/// An outcome without content.
type Done = Result<StatusCode, ApiError>;

/// Changes the key with this number.
fn found_key(id: &str, change: impl FnOnce(u32) -> bool) -> Done {
    if id.parse().is_ok_and(change) {
        return Ok(NO_CONTENT);
    }
    Err(not_found("key", "GET /_mock/keys"))
}

/// `PATCH /_mock/keys/{id}`: changes the plan or the declared senders of a key.
pub(super) async fn change_key(State(app): App, Path(id): Path<String>, body: AdminBody) -> Done {
    let example = "{\"plan\": \"pro\"} or {\"senders\": 8}";
    let KeyChange { plan, senders } = body.read(example)?;
    if plan.is_none() && senders.is_none() {
        return Err(invalid(format!("nothing to change: send {example}")));
    }
    found_key(&id, |id| {
        let declared = senders.is_none_or(|senders| app.declare_senders(id, senders.get()));
        let changed = plan.is_none_or(|plan| app.change_key(id, |it| it.set_plan(plan)));
        declared && changed
    })
}

/// `DELETE /_mock/keys/{id}`.
pub(super) async fn remove_key(State(app): App, Path(id): Path<String>) -> Done {
    found_key(&id, |id| app.remove_key(id))
}

/// `POST /_mock/keys/{id}/reset`: restores unused quotas, ends the ban, and restores own pets.
pub(super) async fn reset_key(State(app): App, Path(id): Path<String>) -> Done {
    found_key(&id, |id| app.reset_key(id))
}

/// `PUT /_mock/keys/{id}/ban`: bans a key from now on.
pub(super) async fn ban_key(State(app): App, Path(id): Path<String>, body: AdminBody) -> Done {
    let length = body.seconds("{\"seconds\": 300}")?;
    found_key(&id, |id| app.ban(id, length))
}

/// `DELETE /_mock/keys/{id}/ban`: ends the ban of a key.
pub(super) async fn unban_key(State(app): App, Path(id): Path<String>) -> Done {
    found_key(&id, |id| {
        app.change_key(id, |account| account.record.pardon())
    })
}

/// `GET /_mock/faults`: the active faults in order, with their hits.
pub(super) async fn faults(State(app): App) -> Response {
    json(StatusCode::OK, &app.faults().list())
}

/// `POST /_mock/faults`: sets a fault, and returns its number.
pub(super) async fn set_fault(State(app): App, body: AdminBody) -> Outcome {
    let fault: Fault = body.read(Fault::EXAMPLE)?;
    if let Some(problem) = app.problem_of(&fault) {
        return Err(invalid(problem));
    }
    // Without its guard, the fault stays until it is removed.
    let id = app.faults().set(fault).detach();
    Ok(json(StatusCode::CREATED, &json!({ "id": id })))
}

/// `DELETE /_mock/faults`: removes all faults.
pub(super) async fn clear_faults(State(app): App) -> StatusCode {
    app.faults().clear();
    NO_CONTENT
}

/// `DELETE /_mock/faults/{id}`.
pub(super) async fn remove_fault(State(app): App, Path(id): Path<String>) -> Done {
    if id.parse().is_ok_and(|id| app.faults().remove(id)) {
        return Ok(NO_CONTENT);
    }
    Err(not_found("fault", "GET /_mock/faults"))
}

/// Returns the key in a query, whose pets are meant.
fn key_of(app: &AppState, query: Query<'_>) -> Result<Option<u32>, ApiError> {
    let key = query.get("key", "the number of a key")?;
    match key.is_none_or(|key| app.accounts().by_number(key).is_some()) {
        true => Ok(key),
        false => Err(not_found("key", "GET /_mock/keys")),
    }
}

/// Returns the key in a query that has no other parameter.
fn only_key(app: &AppState, query: &RawQuery) -> Result<Option<u32>, ApiError> {
    key_of(app, Query::only(query, &["key"])?)
}

/// Returns how many items a query asks for.
fn limit(query: Query<'_>, default: usize) -> Result<usize, ApiError> {
    let limit = query.get::<u32>("limit", "a whole number from 0 on")?;
    Ok(limit.map_or(default, |limit| limit as usize))
}

/// `GET /_mock/pets`: a page of the pets, by id, and their total.
pub(super) async fn pets(State(app): App, query: RawQuery) -> Outcome {
    let query = Query::only(&query, &["after", "key", "limit", "status"])?;
    let after = query.get("after", "the id of a pet")?;
    let limit = limit(query, 100)?;
    let status = query.get("status", "one of available, pending, sold")?;
    app.read(key_of(&app, query)?, |store| {
        let (pets, _) = store.page(after, limit, status);
        let total = store.pets().len();
        let page = json!({ "pets": pets, "total": total });
        Ok(json(StatusCode::OK, &page))
    })
}

/// `POST /_mock/pets`: adds a pet, and returns it.
pub(super) async fn add_pet(State(app): App, query: RawQuery, body: AdminBody) -> Outcome {
    let key = only_key(&app, &query)?;
    let pet: SeedPet = body.read("{\"name\": \"Rex\", \"categoryId\": 7}")?;
    match app.arrange(key, Change::Add(pet.clone())) {
        Ok(id) => Ok(json(StatusCode::CREATED, &pet.into_pet(id))),
        Err(error @ ChangeError::OutOfIds) => Err(conflict(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// `DELETE /_mock/pets`: removes all pets.
pub(super) async fn clear_pets(State(app): App, query: RawQuery) -> Done {
    app.arrange(only_key(&app, &query)?, Change::ClearPets)?;
    Ok(NO_CONTENT)
}

/// `DELETE /_mock/pets/{id}`.
pub(super) async fn remove_pet(State(app): App, Path(id): Path<String>, query: RawQuery) -> Done {
    let key = only_key(&app, &query)?;
    let missing = || not_found("pet", "GET /_mock/pets");
    let id = id.parse().map_err(|_| missing())?;
    match app.arrange(key, Change::Remove(id)) {
        Ok(_) => Ok(NO_CONTENT),
        Err(ChangeError::NoSuchPet(_)) => Err(missing()),
        Err(error) => Err(error.into()),
    }
}

/// `POST /_mock/seed`: replaces pets and orders with a seed.
pub(super) async fn seed(State(app): App, body: AdminBody) -> Done {
    let seed = Seed::from_json(&body.0).and_then(Seed::into_store);
    let store = seed.map_err(|error| match error {
        SeedError::Json(what) => invalid(format!("the seed is invalid: {what}")),
        SeedError::Contradiction(what) => conflict(format!("the seed is invalid: {what}")),
    })?;
    app.replace(Snapshot::new(store))?;
    Ok(NO_CONTENT)
}

/// `POST /_mock/reset`: restores the initial state, except for the clock.
pub(super) async fn reset(State(app): App) -> Done {
    app.reset()?;
    Ok(NO_CONTENT)
}

/// `GET /_mock/snapshot`.
pub(super) async fn snapshot(State(app): App) -> Response {
    json(StatusCode::OK, app.stores().all())
}

/// `PUT /_mock/snapshot`.
pub(super) async fn restore(State(app): App, body: AdminBody) -> Done {
    app.restore(body.read("a response of GET /_mock/snapshot")?)?;
    Ok(NO_CONTENT)
}

/// `GET /_mock/requests`: the latest exchanges in the journal, by number.
pub(super) async fn requests(State(app): App, query: RawQuery) -> Outcome {
    let supported = [
        "after",
        "key",
        "limit",
        "method",
        "operation",
        "path",
        "status",
    ];
    let query = Query::only(&query, &supported)?;
    let after = query.get_with(
        "after",
        "a whole number from 0 to 9223372036854775807",
        |text| {
            text.parse()
                .ok()
                .filter(|after| *after <= i64::MAX.cast_unsigned())
        },
    )?;
    let key = query.get::<u32>("key", "the number of a key")?;
    let method = query.get::<Method>("method", "a method")?;
    let operation = query.get::<Operation>("operation", "the name of an operation")?;
    let path = query.get::<String>("path", "a path")?;
    let status = query.get::<u16>("status", "a status such as 404")?;
    let is_to = |record: &Record, path: &str| {
        record.path() == path || PathTemplate::new(path).matches(record.path())
    };
    let latest = app.journal().latest(limit(query, 200)?, |record| {
        let arrival = &record.arrival;
        let number = arrival.key.as_ref().map(|key| key.number());
        after.is_none_or(|after| record.number > after)
            && key.is_none_or(|key| number == Some(key))
            && method.as_ref().is_none_or(|method| record.method == method)
            && operation.is_none_or(|operation| arrival.operation == Some(operation))
            && path.as_deref().is_none_or(|path| is_to(record, path))
            && status.is_none_or(|status| record.status == Some(status))
    });
    Ok(json(StatusCode::OK, &latest))
}

/// `DELETE /_mock/requests`: clears the journal.
pub(super) async fn clear_requests(State(app): App) -> StatusCode {
    app.forget();
    NO_CONTENT
}

/// `GET /_mock/report` in a format.
pub(super) fn report(
    media_type: &'static str,
    write: fn(&Report) -> String,
) -> MethodRouter<Arc<AppState>> {
    get(async move |State(app): App| text(media_type, write(&app.journal().report())))
}

/// `DELETE /_mock/report`: clears the report.
pub(super) async fn forget_report(State(app): App) -> StatusCode {
    app.journal().forget_report();
    NO_CONTENT
}
