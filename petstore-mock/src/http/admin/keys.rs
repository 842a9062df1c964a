//! `/_mock/keys`: the keys, their plans and what is left to them. A key is shown only where it was made
//! here, to the client that asked for it.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    extract::{Path, State},
    response::Response,
};
use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::input::{self, AdminBody, no_content, not_found};
use crate::{
    exchange::KeyLabel,
    http::{body::json, error::ApiError},
    plan::Plan,
    state::{AppState, KeyError, KeyUsage, QuotaUsage},
};

/// A key as it is listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyView {
    id: u32,
    label: KeyLabel,
    plan: String,
    minute: QuotaView,
    day: QuotaView,
    banned_until: Option<f64>,
    retry_after_until: Option<f64>,
}

#[derive(Serialize)]
struct QuotaView {
    limit: u32,
    used: u32,
    remaining: u32,
    reset: f64,
}

impl From<KeyUsage> for KeyView {
    fn from(usage: KeyUsage) -> Self {
        Self {
            id: usage.number,
            label: usage.label,
            plan: usage.plan.to_string(),
            minute: usage.minute.into(),
            day: usage.day.into(),
            banned_until: usage.banned_until.map(seconds),
            retry_after_until: usage.waits_until.map(seconds),
        }
    }
}

impl From<QuotaUsage> for QuotaView {
    fn from(usage: QuotaUsage) -> Self {
        let QuotaUsage { limit, used, remaining, reset, .. } = usage;
        Self { limit, used, remaining, reset: seconds(reset) }
    }
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// `GET /_mock/keys`.
pub(super) async fn list(State(app): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let keys: Vec<KeyView> = app.usage().into_iter().map(KeyView::from).collect();
    json(StatusCode::OK, &keys)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewKey {
    key: Option<String>,
    #[serde(deserialize_with = "plan")]
    plan: Plan,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPlan {
    #[serde(deserialize_with = "plan")]
    plan: Plan,
}

fn plan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Plan, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

#[derive(Serialize)]
struct Added {
    id: u32,
    /// Only if it was made here.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Box<str>>,
}

/// `POST /_mock/keys`: adds one, or makes one.
pub(super) async fn add(
    State(app): State<Arc<AppState>>,
    body: AdminBody,
) -> Result<Response, ApiError> {
    let NewKey { key, plan } = input::read(&body, "{\"plan\": \"free\"}")?;
    let (made, id) = app.add_key(key.as_deref(), plan).map_err(|error| match error {
        KeyError::Taken => input::conflict(error.to_string()),
        KeyError::Unsendable => input::invalid(error.to_string()),
    })?;
    json(StatusCode::CREATED, &Added { id, key: key.is_none().then_some(made) })
}

/// `PATCH /_mock/keys/{id}`: gives one another plan.
pub(super) async fn change(
    State(app): State<Arc<AppState>>,
    Path(id): Path<String>,
    body: AdminBody,
) -> Result<Response, ApiError> {
    let NewPlan { plan } = input::read(&body, "{\"plan\": \"pro\"}")?;
    done(number(&id).is_some_and(|id| app.set_plan(id, plan)))
}

/// `DELETE /_mock/keys/{id}`.
pub(super) async fn remove(
    State(app): State<Arc<AppState>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    done(number(&id).is_some_and(|id| app.remove_key(id)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ban {
    seconds: f64,
}

/// `PUT /_mock/keys/{id}/ban`: bans one from now on.
pub(super) async fn ban(
    State(app): State<Arc<AppState>>,
    Path(id): Path<String>,
    body: AdminBody,
) -> Result<Response, ApiError> {
    let Ban { seconds } = input::read(&body, "{\"seconds\": 300}")?;
    let length = input::time(seconds)?;
    done(number(&id).is_some_and(|id| app.ban(id, length)))
}

/// `DELETE /_mock/keys/{id}/ban`: ends its ban.
pub(super) async fn unban(
    State(app): State<Arc<AppState>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    done(number(&id).is_some_and(|id| app.unban(id)))
}

fn number(id: &str) -> Option<u32> {
    id.parse().ok()
}

fn done(was_there: bool) -> Result<Response, ApiError> {
    if was_there { Ok(no_content()) } else { Err(not_found("key", "GET /_mock/keys")) }
}
