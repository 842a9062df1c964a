//! The limiter of one key in one process, for clients with the same settings: calls wait for a permit, send,
//! and report the response.
//!
//! The ledger in the store decides how many may send. Read `state` (what is known between two exchanges),
//! `exchange`, and `acquire` (a waiting call) in this order.

mod alone;
mod outcomes;
mod permits;
mod queue;
mod waits;

mod state;

mod alarm;
mod exchange;

mod acquire;
mod control;

use std::sync::Arc;

use tokio::sync::Notify;

pub(crate) use self::acquire::{Acquire, Permit, Refused};
use self::alarm::Alarm;
use self::state::{Mutex, MutexGuard, State, lock};
pub(crate) use self::waits::Wait;
use super::limiter_clock::LimiterClock;
use super::policy::Policy;
use super::quota::Report;
use super::store::KeyStore;

/// The limiter of one key at one origin.
pub(crate) struct Limiter {
    clock: Arc<LimiterClock>,
    store: Arc<KeyStore>,
    state: Mutex<State>,
    alarm: Alarm,
    /// Wakes all waiting calls. Used when a block begins, because it may be too long for some of them.
    changed: Notify,
}

impl Limiter {
    pub(crate) fn new(clock: Arc<LimiterClock>, store: Arc<KeyStore>, policy: Policy) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State::new(policy, store.is_local())),
            clock,
            store,
            alarm: Alarm::default(),
            changed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        // In a shared store, a holder that is gone counts as dead after five seconds.
        if self.store.is_local() {
            let report = Report {
                leaves: true,
                ..self.state().figures()
            };
            drop(self.store.try_exchange(&report, self.clock.now()));
        }
    }
}
