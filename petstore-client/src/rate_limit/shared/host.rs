//! The limiter of a member, and the limiter as the host of an exchange.

use std::sync::Arc;

use http::HeaderValue;

use super::engine::Engine;
use super::exchange::{Exchange, ExchangeState, Host};
use super::member::Member;
use super::slot::MemberId;
use super::store::{RecordKey, SharedStore};
use crate::rate_limit::limiter::Limiter;
use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::time::{Clock, TimeSource};

/// Creates the limiter of a new member.
pub(crate) fn limiter(
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

impl Host for Limiter {
    fn clock(&self) -> &Clock {
        Limiter::clock(self)
    }

    fn access<T>(&self, access: impl FnOnce(&mut Member, &mut ExchangeState, LocalTime) -> T) -> T {
        self.with_engine(|engine, progress, now| {
            let member = engine.member_mut();
            access(member.expect("only members have a store"), progress, now)
        })
    }

    fn demand(&self) -> (u64, Policy) {
        Limiter::demand(self)
    }

    fn updated(&self) {
        self.after_update();
    }

    fn wake(&self) {
        self.wake_all();
    }
}
