//! What a gate knows, for people and programs to see.

use std::time::{Duration, SystemTime};

use super::door::Gate;
use crate::clock;
use crate::error::Quota;
use crate::quota::Policy;

/// What is known of a key's rate limits at one moment, from
/// [`Client::rate_limit`](crate::Client::rate_limit).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// The quotas that the service has told of. A service tells of one with each answer, so not
    /// all that are in force need be known.
    pub quotas: Vec<QuotaStatus>,
    /// What holds all requests back now, if anything does: a refusal, or a quota that is used up.
    pub blocked: Option<Blocked>,
    /// Requests under way.
    pub in_flight: u32,
    /// Calls that wait.
    pub waiting: usize,
    /// Refusals (429, or 503 with `Retry-After`) since the process first used the key.
    pub refusals: u64,
}

/// One quota.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaStatus {
    /// The minute's or the day's, by how far off its reset is.
    pub quota: Quota,
    /// The requests that it allows.
    pub limit: u64,
    /// How many are left for sure: those under way are counted as used.
    pub remaining: u64,
    /// When it is whole again, on the service's clock.
    pub reset: SystemTime,
}

/// Why nothing may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocked {
    /// What asks for it.
    pub quota: Quota,
    /// Until when, on the service's clock.
    pub until: SystemTime,
    /// How much longer that is.
    pub wait: Duration,
}

impl Gate {
    pub(crate) fn snapshot(&self, policy: &Policy) -> RateLimits {
        let blocked = self.hold(policy).map(|hold| Blocked {
            quota: hold.quota,
            until: hold.until_service,
            wait: hold.until.saturating_duration_since(clock::now()),
        });
        let inner = self.lock();
        let state = &inner.keeper.state;
        let quotas = state.accounts().iter().map(|account| QuotaStatus {
            quota: account.horizon.into(),
            limit: account.limit,
            remaining: account.left(state.reserved(), &Policy::default()),
            reset: account.reset.system(),
        });
        RateLimits {
            quotas: quotas.collect(),
            blocked,
            in_flight: state.in_flight,
            waiting: inner.queue.waiting(),
            refusals: state.refusals,
        }
    }
}
