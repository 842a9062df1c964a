//! `/_mock/clock`: what time it is, and moving it.

use axum::{extract::State, response::Response};
use http::StatusCode;
use httpdate::HttpDate;
use serde::{Deserialize, Serialize};

use super::{body, state::Admin};
use crate::{clock::Clock, error::ApiError, extract::Text, routes};

/// What the clock shows.
#[derive(Serialize)]
struct Shown {
    /// Seconds since the Unix epoch.
    now: f64,
    /// The same as the service's `Date` header has it.
    date: String,
    mode: &'static str,
    /// How many times as fast as its source it goes.
    rate: f64,
}

/// `GET /_mock/clock`.
pub(super) async fn show(State(admin): State<Admin>) -> Result<Response, ApiError> {
    shown(admin.world().clock())
}

fn shown(clock: &Clock) -> Result<Response, ApiError> {
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
    routes::json(StatusCode::OK, &Shown { now, date, mode, rate })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    seconds: f64,
}

/// `POST /_mock/clock/advance`.
pub(super) async fn advance(State(admin): State<Admin>, text: Text) -> Result<Response, ApiError> {
    let Step { seconds } = body::read(&text, "{\"seconds\": 60}")?;
    admin.world().clock().advance(body::time(seconds)?);
    shown(admin.world().clock())
}

/// `POST /_mock/clock/freeze`.
pub(super) async fn freeze(State(admin): State<Admin>) -> Result<Response, ApiError> {
    admin.world().clock().freeze();
    shown(admin.world().clock())
}

/// `POST /_mock/clock/resume`.
pub(super) async fn resume(State(admin): State<Admin>) -> Result<Response, ApiError> {
    admin.world().clock().resume();
    shown(admin.world().clock())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    rate: f64,
}

/// `POST /_mock/clock/scale`.
pub(super) async fn scale(State(admin): State<Admin>, text: Text) -> Result<Response, ApiError> {
    let Scale { rate } = body::read(&text, "{\"rate\": 10}")?;
    if !(0.0..=1e6).contains(&rate) {
        return Err(body::invalid("`rate` must be a number from 0 to 1000000".to_owned()));
    }
    admin.world().clock().scale(rate);
    shown(admin.world().clock())
}
