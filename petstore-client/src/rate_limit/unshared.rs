//! Replaces `shared` in builds without the feature `shared-limits`, where no store exists.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use super::quota::clock::LocalTime;
use super::quota::local::Local;
use super::quota::reading::Block;
use super::view::SharedStatus;

/// A type without values, in place of a store.
#[derive(Clone)]
pub(crate) enum NoStore {}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoState;

pub(crate) mod engine {
    pub(crate) use crate::rate_limit::quota::local::Local as Engine;
}

pub(crate) mod exchange {
    pub(crate) use super::{NoState as ExchangeState, NoStore as Exchange};
}

pub(crate) mod store {
    pub(crate) use std::convert::Infallible as StoreError;

    pub(crate) use super::NoStore as SharedStore;
}

pub(crate) mod member_limiter {
    use std::sync::Arc;

    use http::HeaderValue;

    use super::NoStore;
    use crate::rate_limit::limiter::Limiter;
    use crate::rate_limit::time::TimeSource;

    pub(crate) fn create(_: TimeSource, store: &NoStore, _: &str, _: &HeaderValue) -> Arc<Limiter> {
        match *store {}
    }
}

impl Local {
    pub(crate) fn local(&self) -> &Self {
        self
    }

    pub(crate) fn blocked_by_members(&self, _: LocalTime) -> Option<Block> {
        None
    }
}

impl NoStore {
    pub(crate) fn location(&self) -> &str {
        match *self {}
    }

    pub(crate) fn notice_fork(&self, _: &mut Local, _: &mut NoState, _: LocalTime) {
        match *self {}
    }

    pub(crate) fn plan(&self, _: &Local, _: &mut NoState, _: u64, _: LocalTime) -> NoState {
        match *self {}
    }

    pub(crate) fn run<H>(self: &Arc<Self>, _: &Weak<H>, _: NoState) {
        match **self {}
    }

    pub(crate) fn start<H>(self: &Arc<Self>, _: &Weak<H>) {
        match **self {}
    }

    pub(crate) async fn synchronize<H>(&self, _: &H) {
        match *self {}
    }

    pub(crate) async fn forget(&self) -> Result<(), store::StoreError> {
        match *self {}
    }

    pub(crate) fn has_read(&self, _: &Local) -> bool {
        match *self {}
    }

    pub(crate) fn has_changed(&self, _: &NoState, _: &AtomicU64) -> bool {
        match *self {}
    }

    pub(crate) fn status(&self, _: &Local, _: &NoState, _: LocalTime) -> Option<SharedStatus> {
        match *self {}
    }
}
