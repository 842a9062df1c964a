//! What a gate knows, for people and programs to see.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::door::Gate;
use crate::error::Quota;
use crate::quota::{Busy, Policy, Verdict};

/// What is known of a key's rate limits at one moment, from
/// [`Client::rate_limit`](crate::Client::rate_limit).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// The quotas that the service has told of, until their resets. A service tells of one with
    /// each answer, so not all that are in force need be known.
    pub quotas: Vec<QuotaStatus>,
    /// What the service's clock shows, as far as can be told; nothing where no key is known yet.
    pub service_time: Option<SystemTime>,
    /// What holds all requests back now, if anything does: a refusal, or a quota that is used up.
    pub blocked: Option<Blocked>,
    /// Why a call that came now would wait, if it would.
    pub held_by: Option<HeldBy>,
    /// Requests under way.
    pub in_flight: u32,
    /// Requests that ended without an answer: each counts as used until a later answer shows
    /// whether it was.
    pub unsettled: u32,
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

/// What a call waits for, besides those who came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeldBy {
    /// A refusal, or a quota that is used up: [`RateLimits::blocked`] says which, and until when.
    Limit,
    /// The answer to a request that is under way, and is to tell how many may follow: the first
    /// with a key, after a refusal, and where a used-up quota is whole again.
    Probe,
    /// Own requests under way, or without an answer, that may use up what is left of a quota.
    Reserved,
    /// As many own requests are under way as may be at once
    /// ([`max_in_flight`](crate::ClientBuilder::max_in_flight)).
    InFlight,
    /// Requests are spread over the quota's window ([`pacing`](crate::ClientBuilder::pacing)).
    Pacing,
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Limit => "a rate limit",
            Self::Probe => "a first answer that tells how many requests may go",
            Self::Reserved => "requests under way that may use up what is left",
            Self::InFlight => "the most requests that may be under way at once",
            Self::Pacing => "the pace that spreads requests",
        })
    }
}

impl Gate {
    pub(crate) fn snapshot(&self, policy: &Policy) -> RateLimits {
        let now = self.now();
        let inner = self.lock();
        let (held_by, block) = match inner.keeper.verdict(now, policy) {
            Verdict::Go(_) => (None, None),
            Verdict::Blocked(block) => (Some(HeldBy::Limit), Some(block)),
            Verdict::Paced(_) => (Some(HeldBy::Pacing), None),
            Verdict::Busy(Busy::Probe) => (Some(HeldBy::Probe), None),
            Verdict::Busy(Busy::Reserved) | Verdict::Settling(_) => (Some(HeldBy::Reserved), None),
            Verdict::Busy(Busy::InFlight) => (Some(HeldBy::InFlight), None),
        };
        let blocked = block.map(|block| self.in_process(&inner, block)).map(|hold| Blocked {
            quota: hold.quota,
            until: hold.until_service,
            wait: hold.until.saturating_duration_since(self.instant(now)),
        });
        let state = &inner.keeper.state;
        let service_time = inner.keeper.service_time(now);
        let known = state.accounts().iter().filter(|account| account.reset > service_time);
        let quotas = known.map(|account| QuotaStatus {
            quota: account.horizon.into(),
            limit: account.limit,
            remaining: account.left(state.reserved(), &Policy::default()),
            reset: account.reset.system(),
        });
        RateLimits {
            quotas: quotas.collect(),
            service_time: Some(service_time.system()),
            blocked,
            held_by,
            in_flight: state.in_flight(),
            unsettled: state.unsettled(),
            waiting: inner.queue.waiting(),
            refusals: state.refusals,
        }
    }
}
