//! `POST /_mock/clock/advance`: moves the clock, from this machine only.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, response::Response};
use http::StatusCode;
use httpdate::HttpDate;
use serde::{Deserialize, Serialize};

use crate::{
    error::{ApiError, ErrorCode},
    extract::{LocalAdmin, Text},
    routes,
    world::World,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object such as {\"seconds\": 60}")]
struct Step {
    seconds: f64,
}

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
    let step: Step = serde_json::from_str(text.as_str()?)
        .map_err(|error| invalid(format!("the body must be {{\"seconds\": N}}: {error}")))?;
    let by = Duration::try_from_secs_f64(step.seconds).map_err(|_| {
        invalid("`seconds` must be a number from 0 on: the clock goes forward only".to_owned())
    })?;
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

/// Answers 405 to other methods.
pub(crate) async fn not_post(_: LocalAdmin) -> ApiError {
    ApiError::method_not_allowed("POST")
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidBody, message)
}
