//! What a key has used, as it is shown.

use std::time::{Duration, SystemTime};

use crate::{clock::instant, exchange::KeyLabel, plan::Plan, quota::Rate};

/// What is known of a key at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyUsage {
    /// The number of the key: the server counts its keys from 1, the first ones in their order.
    pub number: u32,
    /// Its plan.
    pub plan: Plan,
    /// How it may be shown.
    pub label: KeyLabel,
    /// The minute's quota.
    pub minute: QuotaUsage,
    /// The day's quota.
    pub day: QuotaUsage,
    /// Until when it is banned, if it is.
    pub banned_until: Option<SystemTime>,
    /// Until when it was told to wait by the `Retry-After` of a 429, if that lies ahead.
    pub waits_until: Option<SystemTime>,
}

/// What is used of a quota at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaUsage {
    /// How many requests it allows.
    pub limit: u32,
    /// How many count: more than the limit where that was lowered since.
    pub used: u32,
    /// How many are left.
    pub remaining: u32,
    /// When it resets, as `X-RateLimit-Reset` would say it.
    pub reset: SystemTime,
}

impl QuotaUsage {
    pub(super) fn new((used, rate): (u32, Rate)) -> Self {
        let reset = instant(Duration::from_secs(rate.reset));
        Self { limit: rate.limit, used, remaining: rate.remaining, reset }
    }
}
