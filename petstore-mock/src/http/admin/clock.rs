//! `/_mock/clock`: what time it is, and moving it.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use http::StatusCode;
use httpdate::HttpDate;
use serde::{Deserialize, Serialize};

use super::input::{self, AdminBody};
use crate::{
    clock::{self, Clock},
    http::{body::json, error::ApiError},
    state::AppState,
};

/// What the clock shows.
#[derive(Serialize)]
struct ClockView {
    /// Seconds since the Unix epoch.
    now: f64,
    /// The same as the service's `Date` header has it.
    date: String,
    mode: &'static str,
    /// How many times as fast as its source it goes.
    rate: f64,
}

/// `GET /_mock/clock`.
pub(super) async fn show(State(app): State<Arc<AppState>>) -> Result<Response, ApiError> {
    view(app.clock())
}

fn view(clock: &Clock) -> Result<Response, ApiError> {
    let rate = clock.pace();
    let mode = if rate == 0.0 {
        "frozen"
    } else if rate == 1.0 {
        "running"
    } else {
        "scaled"
    };
    let now = clock.since_epoch().as_secs_f64();
    let date = HttpDate::from(clock.now()).to_string();
    json(StatusCode::OK, &ClockView { now, date, mode, rate })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    seconds: f64,
}

/// `POST /_mock/clock/advance`.
pub(super) async fn advance(
    State(app): State<Arc<AppState>>,
    body: AdminBody,
) -> Result<Response, ApiError> {
    let Step { seconds } = input::read(&body, "{\"seconds\": 60}")?;
    app.clock().advance(input::time(seconds)?);
    view(app.clock())
}

/// `POST /_mock/clock/freeze`.
pub(super) async fn freeze(State(app): State<Arc<AppState>>) -> Result<Response, ApiError> {
    app.clock().freeze();
    view(app.clock())
}

/// `POST /_mock/clock/resume`.
pub(super) async fn resume(State(app): State<Arc<AppState>>) -> Result<Response, ApiError> {
    app.clock().resume();
    view(app.clock())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    rate: f64,
}

/// `POST /_mock/clock/scale`.
pub(super) async fn scale(
    State(app): State<Arc<AppState>>,
    body: AdminBody,
) -> Result<Response, ApiError> {
    let Scale { rate } = input::read(&body, "{\"rate\": 10}")?;
    if !(0.0..=1e6).contains(&rate) {
        return Err(input::invalid("`rate` must be a number from 0 to 1000000".to_owned()));
    }
    app.clock().scale(rate);
    view(app.clock())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTime {
    now: String,
}

/// `POST /_mock/clock/set`.
pub(super) async fn set(
    State(app): State<Arc<AppState>>,
    body: AdminBody,
) -> Result<Response, ApiError> {
    let NewTime { now } = input::read(&body, "{\"now\": \"2030-12-05T00:00:00Z\"}")?;
    let at = clock::parse_date(&now).map_err(|error| input::invalid(format!("`now`: {error}")))?;
    if at < app.clock().now() {
        let date = HttpDate::from(app.clock().now());
        return Err(input::conflict(format!(
            "the clock never goes back, and it is {date} already: start the mock with --start-at"
        )));
    }
    app.clock().advance_to(at);
    view(app.clock())
}
