//! What clients ask of a limiter besides permits.

use std::sync::Arc;

use super::Limiter;
use super::state::State;
use crate::logging::TARGET;
use crate::rate_limit::quota::Report;
use crate::rate_limit::quota::instant::micros;
use crate::rate_limit::store::StoreError;
use crate::rate_limit::view::{Blocked, RateLimits, Shared, WaitReason};

impl Limiter {
    /// Returns a snapshot of what is known, for display. Reads a shared file that was not read yet.
    pub(crate) fn view(self: &Arc<Self>) -> RateLimits {
        let mut state = self.state();
        if !state.has_exchanged() {
            state.ask();
        }
        drop(state);
        let now = self.clock.now();
        self.exchange(now);
        let state = self.state();
        let last_seen = state.last_seen_alone(now);
        let (ledger, store_now) = last_seen.unwrap_or_else(|| self.store.last_seen(now));
        let report = state.pending(now);
        let holders = ledger.holder_count();
        let mut limits = ledger.snapshot(&report, store_now);
        if limits.blocked.is_none() && state.is_full() {
            limits.wait_reason = Some(WaitReason::Concurrency);
        }
        RateLimits {
            in_flight: u32::try_from(state.in_flight()).unwrap_or(u32::MAX),
            waiting: state.waiting(),
            shared: self.status(&state, holders),
            ..limits
        }
    }

    fn status(&self, state: &State, holders: u32) -> Option<Shared> {
        Some(Shared {
            location: self.store.location()?,
            holders,
            problem: state.problem(),
        })
    }

    /// Returns the number of the last time that the store went away or came, among those of all limiters; 0 before
    /// its first answer, and without a shared store.
    pub(crate) fn store_change(&self) -> u64 {
        if self.store.is_local() {
            return 0;
        }
        self.state().store_change()
    }

    /// Returns the store's status, if it is shared.
    pub(crate) fn store_status(&self) -> Option<Shared> {
        let state = self.state();
        let (ledger, _) = self.store.last_seen(self.clock.now());
        self.status(&state, ledger.holder_count())
    }

    /// Logs that the store went away, or works again.
    pub(super) fn log_store(&self, problem: Option<&StoreError>) {
        let location = self.store.location();
        match problem {
            Some(problem) => tracing::warn!(
                target: TARGET,
                location,
                %problem,
                "the store of shared limits cannot be used; the client goes on with what it knows"
            ),
            None => {
                tracing::info!(target: TARGET, location, "the store of shared limits works again");
            }
        }
    }

    /// Records that the last 429 was a ban.
    pub(crate) fn record_ban(self: &Arc<Self>) {
        let now = self.clock.now();
        self.state().record_ban(now);
        self.follow(now);
    }

    /// Returns whether to warn of a block: it lasts longer than the one that was last warned of. All requests that
    /// are in flight when a block begins are refused.
    pub(crate) fn must_warn(&self, blocked: Blocked) -> bool {
        let now = self.clock.now();
        let ends = now.plus(micros(blocked.remaining));
        self.state().must_warn(ends, now)
    }

    /// Exchanges what is known with the store now. A holder that neither waits nor has requests in flight
    /// leaves, because the process may end.
    pub(crate) async fn synchronize(self: &Arc<Self>) {
        let leave = |report: &mut Report| {
            report.leaves = report.waiting == 0 && report.in_flight == 0;
        };
        // The view says why it failed.
        _ = self.exchange_now(leave).await;
    }

    /// Forgets all that is known, for all holders.
    pub(crate) async fn forget(self: &Arc<Self>) -> Result<(), StoreError> {
        self.exchange_now(|report| report.forgets = true).await
    }
}
