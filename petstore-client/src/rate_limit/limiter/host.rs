//! What an exchange with a store needs from the limiter.

use super::{Limiter, State};
use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::shared::exchange::{ExchangeState, Host};
use crate::rate_limit::shared::member::Member;
use crate::rate_limit::time::Clock;

impl Host for Limiter {
    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn access<T>(&self, access: impl FnOnce(&mut Member, &mut ExchangeState, LocalTime) -> T) -> T {
        let (now, mut state) = self.lock_own();
        let State {
            engine, progress, ..
        } = &mut *state;
        let member = engine.member_mut();
        access(member.expect("only members have a store"), progress, now)
    }

    fn demand(&self) -> (u64, Policy) {
        let (_, state) = self.lock();
        let policy = state.queue.first_policy().unwrap_or(state.policy);
        (state.queue.wanted(&state.engine), policy)
    }

    fn updated(&self) {
        let (now, state) = self.lock();
        self.after_change(now, state);
    }

    fn wake(&self) {
        self.changed.notify_waiters();
    }
}
