//! `/_mock/keys`: the keys, their plans and what is left to them. Keys themselves are not shown, but
//! for one that was made here, to whoever asked for it.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::{
    extract::{Path, State},
    response::Response,
};
use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{
    body,
    reply::{no_content, not_found},
    state::Admin,
};
use crate::{
    error::ApiError,
    exchange::KeyLabel,
    extract::Text,
    plan::Plan,
    routes,
    world::{KeyError, KeyUsage, QuotaUsage},
};

/// A key as it is listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    id: u32,
    label: KeyLabel,
    plan: String,
    minute: Quota,
    day: Quota,
    banned_until: Option<f64>,
    retry_after_until: Option<f64>,
}

#[derive(Serialize)]
struct Quota {
    limit: u32,
    used: u32,
    remaining: u32,
    reset: f64,
}

impl From<KeyUsage> for Shown {
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

impl From<QuotaUsage> for Quota {
    fn from(usage: QuotaUsage) -> Self {
        let QuotaUsage { limit, used, remaining, reset, .. } = usage;
        Self { limit, used, remaining, reset: seconds(reset) }
    }
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// `GET /_mock/keys`.
pub(super) async fn list(State(admin): State<Admin>) -> Result<Response, ApiError> {
    let keys: Vec<Shown> = admin.world().usage().into_iter().map(Shown::from).collect();
    routes::json(StatusCode::OK, &keys)
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
pub(super) async fn add(State(admin): State<Admin>, text: Text) -> Result<Response, ApiError> {
    let NewKey { key, plan } = body::read(&text, "{\"plan\": \"free\"}")?;
    let (made, id) = admin.world().add_key(key.as_deref(), plan).map_err(|error| match error {
        KeyError::Taken => body::conflict(error.to_string()),
        KeyError::Unsendable => body::invalid(error.to_string()),
    })?;
    routes::json(StatusCode::CREATED, &Added { id, key: key.is_none().then_some(made) })
}

/// `PATCH /_mock/keys/{id}`: gives one another plan.
pub(super) async fn change(
    State(admin): State<Admin>,
    Path(id): Path<String>,
    text: Text,
) -> Result<Response, ApiError> {
    let NewPlan { plan } = body::read(&text, "{\"plan\": \"pro\"}")?;
    done(number(&id).is_some_and(|id| admin.world().set_plan(id, plan)))
}

/// `DELETE /_mock/keys/{id}`.
pub(super) async fn remove(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    done(number(&id).is_some_and(|id| admin.world().remove_key(id)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ban {
    seconds: f64,
}

/// `PUT /_mock/keys/{id}/ban`: bans one from now on.
pub(super) async fn ban(
    State(admin): State<Admin>,
    Path(id): Path<String>,
    text: Text,
) -> Result<Response, ApiError> {
    let Ban { seconds } = body::read(&text, "{\"seconds\": 300}")?;
    let length = body::time(seconds)?;
    done(number(&id).is_some_and(|id| admin.world().ban(id, length)))
}

/// `DELETE /_mock/keys/{id}/ban`: ends its ban.
pub(super) async fn unban(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    done(number(&id).is_some_and(|id| admin.world().unban(id)))
}

fn number(id: &str) -> Option<u32> {
    id.parse().ok()
}

fn done(was_there: bool) -> Result<Response, ApiError> {
    if was_there { Ok(no_content()) } else { Err(not_found("key", "GET /_mock/keys")) }
}
