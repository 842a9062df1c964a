//! The handlers of the administration: health, clock, keys, faults, store, requests and report.

use std::{convert::Infallible, num::NonZeroU32, sync::Arc};

use axum::{
    body::Body,
    extract::{Path, RawQuery, State},
    response::Response,
    routing::{MethodRouter, get},
};
use futures_util::stream;
use http::{Method, StatusCode};
use httpdate::HttpDate;
use serde::Deserialize;
use serde_json::json;

use super::{
    assets::{json, text},
    input::{AdminBody, conflict, invalid, not_found, time},
};
use crate::{
    clock::{self, Clock},
    fault::Fault,
    http::{
        error::{ApiError, ErrorCode},
        params::Query,
    },
    journal::Pattern,
    model::PetStatus,
    operation::Operation,
    plan::Plan,
    report::Report,
    state::{AppState, Change, KeyError, Seed, SeedError, Snapshot},
    text::present,
};

type App = State<Arc<AppState>>;
type Outcome = Result<Response, ApiError>;

const NO_CONTENT: StatusCode = StatusCode::NO_CONTENT;

/// `GET /_mock/health`: the mock serves.
pub(super) async fn health() -> Outcome {
    json(StatusCode::OK, &json!({"status": "ok"}))
}

/// `GET /_mock/ready`: the mock serves, and can make changes.
pub(super) async fn ready(State(app): App) -> Outcome {
    if app.is_ready().await {
        return health().await;
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
pub(super) async fn clock(State(app): App) -> Outcome {
    show(app.clock())
}

fn show(clock: &Clock) -> Outcome {
    let rate = clock.pace();
    let mode = match rate {
        0.0 => "frozen",
        1.0 => "running",
        _ => "scaled",
    };
    let now = clock.since_epoch().as_secs_f64();
    let date = HttpDate::from(clock.now()).to_string();
    json(
        StatusCode::OK,
        &json!({"now": now, "date": date, "mode": mode, "rate": rate}),
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    seconds: f64,
}

/// `POST /_mock/clock/advance`.
pub(super) async fn advance_clock(State(app): App, body: AdminBody) -> Outcome {
    let Length { seconds } = body.read("{\"seconds\": 60}")?;
    app.clock().advance(time(seconds)?);
    show(app.clock())
}

/// `POST /_mock/clock/freeze`.
pub(super) async fn freeze_clock(State(app): App) -> Outcome {
    app.clock().freeze();
    show(app.clock())
}

/// `POST /_mock/clock/resume`.
pub(super) async fn resume_clock(State(app): App) -> Outcome {
    app.clock().resume();
    show(app.clock())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    rate: f64,
}

/// `POST /_mock/clock/scale`.
pub(super) async fn scale_clock(State(app): App, body: AdminBody) -> Outcome {
    let Scale { rate } = body.read("{\"rate\": 10}")?;
    if !(0.0..=1e6).contains(&rate) {
        return Err(invalid("`rate` must be a number from 0 to 1000000"));
    }
    app.clock().scale(rate);
    show(app.clock())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTime {
    now: String,
}

/// `POST /_mock/clock/set`.
pub(super) async fn set_clock(State(app): App, body: AdminBody) -> Outcome {
    let NewTime { now } = body.read("{\"now\": \"2030-12-05T00:00:00Z\"}")?;
    let at = clock::parse_date(&now).map_err(|error| invalid(format!("`now`: {error}")))?;
    if at < app.clock().now() {
        let date = HttpDate::from(app.clock().now());
        return Err(conflict(format!(
            "the clock never goes back, and it is {date} already: start the mock with --start-at"
        )));
    }
    app.clock().advance_to(at);
    show(app.clock())
}

/// `GET /_mock/keys`.
pub(super) async fn keys(State(app): App) -> Outcome {
    json(StatusCode::OK, &app.usage())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewKey {
    key: Option<String>,
    name: Option<String>,
    plan: Plan,
    #[serde(default, deserialize_with = "present")]
    senders: Option<NonZeroU32>,
}

/// The maximum length of a key's name, in characters.
const MAX_NAME: usize = 100;

/// Refuses a name that would look like another label, or spoil a report.
fn check_name(name: &str) -> Result<(), ApiError> {
    let is_valid = !name.is_empty()
        && name.chars().count() <= MAX_NAME
        && !name.starts_with('…')
        && !name.chars().any(char::is_control);
    if is_valid {
        return Ok(());
    }
    Err(invalid(
        "`name` must be 1 to 100 characters, without control characters or a leading `…`",
    ))
}

/// `POST /_mock/keys`: adds a key. Without a key in the body, creates one; only this response
/// contains it.
pub(super) async fn add_key(State(app): App, body: AdminBody) -> Outcome {
    let NewKey {
        key,
        name,
        plan,
        senders,
    } = body.read("{\"plan\": \"free\"}")?;
    name.as_deref().map_or(Ok(()), check_name)?;
    let (made, id) =
        app.add_key(key.as_deref(), name.as_deref(), plan)
            .map_err(|error| match error {
                KeyError::Taken => conflict(error.to_string()),
                KeyError::Unsendable => invalid(error.to_string()),
            })?;
    if let Some(senders) = senders {
        app.declare_senders(id, senders.get());
    }
    let added = match key {
        Some(_) => json!({"id": id}),
        None => json!({"id": id, "key": made}),
    };
    json(StatusCode::CREATED, &added)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyChange {
    #[serde(default, deserialize_with = "present")]
    plan: Option<Plan>,
    #[serde(default, deserialize_with = "present")]
    senders: Option<NonZeroU32>,
}

type KeyOutcome = Result<StatusCode, ApiError>;

fn found_key(id: &str, change: impl FnOnce(u32) -> bool) -> KeyOutcome {
    let is_there = id.parse().is_ok_and(change);
    is_there
        .then_some(NO_CONTENT)
        .ok_or_else(|| not_found("key", "GET /_mock/keys"))
}

/// `PATCH /_mock/keys/{id}`: changes the plan or the declared senders of a key.
pub(super) async fn change_key(
    State(app): App,
    Path(id): Path<String>,
    body: AdminBody,
) -> KeyOutcome {
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
pub(super) async fn remove_key(State(app): App, Path(id): Path<String>) -> KeyOutcome {
    found_key(&id, |id| app.remove_key(id))
}

/// `POST /_mock/keys/{id}/reset`: restores unused quotas, ends the ban, and restores own pets.
pub(super) async fn reset_key(State(app): App, Path(id): Path<String>) -> KeyOutcome {
    found_key(&id, |id| app.reset_key(id))
}

/// `PUT /_mock/keys/{id}/ban`: bans a key from now on.
pub(super) async fn ban_key(
    State(app): App,
    Path(id): Path<String>,
    body: AdminBody,
) -> KeyOutcome {
    let Length { seconds } = body.read("{\"seconds\": 300}")?;
    let length = time(seconds)?;
    found_key(&id, |id| app.ban(id, length))
}

/// `DELETE /_mock/keys/{id}/ban`: ends the ban of a key.
pub(super) async fn unban_key(State(app): App, Path(id): Path<String>) -> KeyOutcome {
    found_key(&id, |id| {
        app.change_key(id, |account| account.record.pardon())
    })
}

/// `GET /_mock/faults`: the active faults in order, with their hits.
pub(super) async fn faults(State(app): App) -> Outcome {
    json(StatusCode::OK, &app.faults().list())
}

/// `POST /_mock/faults`: sets a fault, and returns its number.
pub(super) async fn set_fault(State(app): App, body: AdminBody) -> Outcome {
    let fault: Fault = body.read("{\"effect\": {\"status\": 503}}")?;
    // Without its guard, the fault stays until it is removed.
    let id = app.faults().set(fault).detach();
    json(StatusCode::CREATED, &json!({ "id": id }))
}

/// `DELETE /_mock/faults`: removes all faults.
pub(super) async fn clear_faults(State(app): App) -> StatusCode {
    app.faults().clear();
    NO_CONTENT
}

/// `DELETE /_mock/faults/{id}`.
pub(super) async fn remove_fault(
    State(app): App,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let is_there = id.parse().is_ok_and(|id| app.faults().remove(id));
    is_there
        .then_some(NO_CONTENT)
        .ok_or_else(|| not_found("fault", "GET /_mock/faults"))
}

/// `GET /_mock/pets`: a page of the pets, by id, and their total.
pub(super) async fn pets(State(app): App, RawQuery(query): RawQuery) -> Outcome {
    let query = Query(query.as_deref().unwrap_or("")).only(&["after", "key", "limit", "status"])?;
    let after = query.get::<i64>("after", "the id of a pet")?;
    let limit = limit(query, 100)?;
    let status = query.get::<PetStatus>("status", "one of available, pending, sold")?;
    let key = query.get::<u32>("key", "the number of a key")?;
    app.read(key, |store| {
        let page = store.page(after, limit, status);
        json(
            StatusCode::OK,
            &json!({ "pets": page.pets(), "total": store.pets().len() }),
        )
    })
}

fn limit(query: Query<'_>, default: usize) -> Result<usize, ApiError> {
    let limit = query.get::<u32>("limit", "a whole number from 0 on")?;
    Ok(limit.map_or(default, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    }))
}

/// Parses a long text on a separate thread, so that other requests do not wait.
async fn aside<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(read)
        .await
        .unwrap_or_else(|_| Err(ApiError::panicked()))
}

/// `POST /_mock/seed`: replaces pets and orders with a seed.
pub(super) async fn seed(State(app): App, body: AdminBody) -> Result<StatusCode, ApiError> {
    let wrong = |error: SeedError| match error {
        SeedError::Json(what) => invalid(format!("the seed is invalid: {what}")),
        SeedError::Contradiction(what) => conflict(format!("the seed is invalid: {what}")),
    };
    let read = move || {
        Seed::from_json(&body.0)
            .and_then(Seed::into_store)
            .map_err(wrong)
    };
    app.arrange(None, Change::Replace(aside(read).await?))
        .await?;
    Ok(NO_CONTENT)
}

/// `POST /_mock/reset`: restores the initial state, except for the clock.
pub(super) async fn reset(State(app): App) -> Result<StatusCode, ApiError> {
    app.reset().await?;
    Ok(NO_CONTENT)
}

/// `GET /_mock/snapshot`.
pub(super) async fn snapshot(State(app): App) -> Response {
    let pieces = stream::iter(app.snapshot().into_json_pieces().map(Ok::<_, Infallible>));
    text("application/json", Body::from_stream(pieces))
}

/// `PUT /_mock/snapshot`.
pub(super) async fn restore(State(app): App, body: AdminBody) -> Result<StatusCode, ApiError> {
    let read = move || body.read::<Snapshot>("a response of GET /_mock/snapshot");
    app.restore(&aside(read).await?).await?;
    Ok(NO_CONTENT)
}

/// `GET /_mock/requests`: the latest exchanges in the journal, by number.
pub(super) async fn requests(State(app): App, RawQuery(query): RawQuery) -> Outcome {
    let known = [
        "after",
        "key",
        "limit",
        "method",
        "operation",
        "path",
        "status",
    ];
    let query = Query(query.as_deref().unwrap_or("")).only(&known)?;
    let operation = format!(
        "one of {}",
        Operation::ALL
            .iter()
            .map(|one| one.name())
            .collect::<Vec<_>>()
            .join(", ")
    );
    let mut pattern = query
        .get::<Operation>("operation", &operation)?
        .map_or_else(Pattern::any, Pattern::from);
    if let Some(method) = query.get::<Method>("method", "a method")? {
        pattern = pattern.method(method);
    }
    if let Some(path) = query.get::<String>("path", "a path")? {
        pattern = pattern.path(path);
    }
    if let Some(status) = query.get::<u16>("status", "a status such as 404")? {
        pattern = pattern.status(status);
    }
    let expected = "a whole number from 0 to 9223372036854775807";
    let count = |text: &str| {
        text.parse()
            .ok()
            .filter(|after| i64::try_from(*after).is_ok())
    };
    let after: u64 = query.get_with("after", expected, count)?.unwrap_or(0);
    let key = query.get::<u32>("key", "the number of a key")?;
    let latest = app
        .journal()
        .latest(&pattern, limit(query, 200)?, |record| {
            record.number > after
                && key.is_none_or(|key| {
                    record
                        .arrival
                        .key
                        .as_ref()
                        .is_some_and(|it| it.number() == key)
                })
        });
    json(StatusCode::OK, &latest)
}

/// `GET /_mock/journal`: how much the journal holds, and how much it has dropped.
pub(super) async fn journal(State(app): App) -> Outcome {
    json(StatusCode::OK, &app.journal().usage())
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
    get(async move |State(app): App| text(media_type, write(&app.report())))
}

/// `DELETE /_mock/report`: clears the report.
pub(super) async fn forget_report(State(app): App) -> StatusCode {
    app.forget_report();
    NO_CONTENT
}
