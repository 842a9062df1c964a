//! `POST /_mock/clock/advance`: moves the clock, from this machine only.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, response::Response};
use http::StatusCode;
use httpdate::HttpDate;
use serde::Serialize;
use serde_json::Value;

use crate::{
    error::{ApiError, ErrorCode},
    extract::{LocalAdmin, Text},
    routes,
    world::World,
};

/// The time it is after the step.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Moved {
    /// Whole seconds since the Unix epoch, rounded down.
    epoch_seconds: u64,
    date: String,
}

/// Moves the clock forward and answers the time it is then.
pub(crate) async fn advance(
    _: LocalAdmin,
    State(world): State<Arc<World>>,
    text: Text,
) -> Result<Response, ApiError> {
    let by = step(text.as_str()?)?;
    let clock = world.clock();
    if by > clock.room() {
        return Err(invalid(
            "`seconds` would move the clock past the year 9999, the last HTTP can name".to_owned(),
        ));
    }
    clock.advance(by);
    let moved = Moved {
        epoch_seconds: clock.since_epoch().as_secs(),
        date: HttpDate::from(clock.now()).to_string(),
    };
    routes::json(StatusCode::OK, &moved)
}

/// Reads how far to go.
fn step(text: &str) -> Result<Duration, ApiError> {
    let body: Value = serde_json::from_str(text)
        .map_err(|error| invalid(format!("the body is not valid JSON: {error}")))?;
    let only = body.as_object().filter(|fields| fields.len() == 1);
    let seconds = only.and_then(|fields| fields.get("seconds")).and_then(Value::as_f64);
    // A clock that goes back would make nonsense of every quota.
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        let example = "{\"seconds\": 60}, with a number from 0 on";
        invalid(format!("the body must be a JSON object such as {example}"))
    })
}

/// Answers 405 to other methods.
pub(crate) async fn not_post(_: LocalAdmin) -> ApiError {
    ApiError::method_not_allowed("POST")
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidBody, message)
}
