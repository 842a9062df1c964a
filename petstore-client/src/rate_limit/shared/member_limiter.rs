//! Creates the limiter of a member.

use std::sync::Arc;

use http::HeaderValue;

use super::engine::Engine;
use super::exchange::Exchange;
use super::slot::MemberId;
use super::store::{RecordKey, SharedStore};
use crate::rate_limit::limiter::Limiter;
use crate::rate_limit::time::TimeSource;

/// Creates the limiter of a new member.
pub(crate) fn create(
    source: TimeSource,
    store: &SharedStore,
    origin: &str,
    authorization: &HeaderValue,
) -> Arc<Limiter> {
    let key = RecordKey::of(origin, authorization);
    let exchange = Exchange::new(Arc::clone(store), key);
    Limiter::with_engine_of(source, Some(exchange), |now, wall| {
        Engine::of_member(MemberId::random(), now, wall)
    })
}
