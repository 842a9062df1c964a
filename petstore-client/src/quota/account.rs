//! One quota, as the service accounts for it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answer::Rate;
use super::policy::Policy;
use super::time::Time;

/// Resets that are no further apart than this belong to the same window: servers round.
pub(super) const SAME_WINDOW: i64 = 2_000_000;
/// A reset that is further off than this is not the minute's.
const MINUTE: Duration = Duration::from_secs(90);
/// A window whose reset follows another's sooner is the same one, and slides.
const SHORTEST: Duration = Duration::from_secs(50);
/// How many requests it takes to tell which part of a quota strangers use: what was known before
/// counts as much as so many.
const ENOUGH: u64 = 8;
/// The own part that is assumed where others have used a window before it was first seen.
pub(super) const SHARED: f64 = 0.25;

/// How far a quota reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Horizon {
    Minute,
    Day,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) limit: u64,
    pub(crate) horizon: Horizon,
    /// The lowest figure seen in this window.
    pub(crate) remaining: u64,
    pub(crate) reset: Time,
    /// The reset with which the window was opened.
    anchor: Time,
    /// How many requests had been sent by then.
    opened_after: u64,
    opened_with: u64,
    /// Own requests answered in this window, besides the one that opened it.
    own: u64,
    /// Strangers' requests that were in the window before it was seen.
    foreign_before: u64,
    /// The own part of what is used, as it was known when the window was opened.
    prior: Option<f64>,
}

/// What an answer's figure is to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    Same,
    Later,
    Earlier,
}

impl Account {
    /// Opens the first window that is seen. Where the telling request and the own ones under way
    /// are not all that is used of it, others may be at work, and care is taken until it shows.
    pub(crate) fn open(
        rate: Rate,
        (reserved, sent): (u64, u64),
        share: Option<f64>,
        now: Time,
    ) -> Self {
        let fresh = rate.limit - rate.remaining <= 1 + reserved;
        let near = rate.reset.since(now) <= MINUTE;
        Self {
            limit: rate.limit,
            horizon: if near { Horizon::Minute } else { Horizon::Day },
            remaining: rate.remaining,
            reset: rate.reset,
            anchor: rate.reset,
            opened_after: sent,
            opened_with: rate.remaining,
            own: 0,
            foreign_before: 0,
            prior: share.or((!fresh).then_some(SHARED)),
        }
    }

    /// Opens the window that follows this one. What is used of it already, besides the request
    /// that tells of it and the own ones under way, was used by strangers.
    pub(crate) fn reopen(
        &self,
        rate: Rate,
        (reserved, sent): (u64, u64),
        share: Option<f64>,
    ) -> Self {
        let used = rate.limit - rate.remaining;
        // Of a window that slides, own requests are left.
        let slides = rate.reset.since(self.anchor) < SHORTEST;
        let foreign_before = if slides { 0 } else { used.saturating_sub(1 + reserved) };
        Self {
            remaining: rate.remaining,
            reset: rate.reset,
            anchor: rate.reset,
            opened_after: sent,
            opened_with: rate.remaining,
            own: 0,
            foreign_before,
            prior: share,
            ..*self
        }
    }

    /// Returns whether this window was known when a request was sent.
    pub(crate) fn knew_before(&self, request: u64) -> bool {
        request > self.opened_after
    }

    /// Takes in an earlier window of which the service speaks although this one was known: its
    /// clock was set back.
    pub(crate) fn set_back(&mut self, rate: Rate, sent: u64) {
        self.remaining = self.remaining.min(rate.remaining);
        (self.reset, self.anchor) = (rate.reset, rate.reset);
        (self.opened_after, self.opened_with, self.own) = (sent, self.remaining, 0);
    }

    /// Returns whether an answer speaks of this quota. The limit alone would not tell: 1,000 is
    /// one plan's day and another's minute.
    pub(crate) fn is(&self, rate: &Rate, now: Time) -> bool {
        let near = rate.reset.since(now) <= MINUTE;
        let horizon = if near { Horizon::Minute } else { Horizon::Day };
        self.limit == rate.limit && (self.horizon == horizon || self.window(rate) == Window::Same)
    }

    pub(crate) fn window(&self, rate: &Rate) -> Window {
        match rate.reset.0.saturating_sub(self.anchor.0) {
            ahead if ahead > SAME_WINDOW => Window::Later,
            ahead if ahead < -SAME_WINDOW => Window::Earlier,
            _ => Window::Same,
        }
    }

    /// Takes in a figure of this window. It may only lower what is believed, unless no other own
    /// request can have been counted meanwhile.
    pub(crate) fn lower(&mut self, rate: &Rate, exact: bool) {
        self.reset = self.reset.max(rate.reset);
        if rate.remaining > self.remaining && exact {
            let raised = rate.remaining - self.remaining;
            self.opened_with = self.opened_with.saturating_add(raised);
            self.remaining = rate.remaining;
        }
        self.remaining = self.remaining.min(rate.remaining);
    }

    /// Takes in own requests that were let in, or may have been.
    pub(crate) fn count_own(&mut self, requests: u32) {
        self.own += u64::from(requests);
    }

    /// Takes in an own request that an answer did not report on.
    pub(crate) fn count_unreported(&mut self) {
        self.remaining = self.remaining.saturating_sub(1);
    }

    pub(crate) fn passed(&self, now: Time, guard: Duration) -> bool {
        now >= self.opens(guard)
    }

    /// Returns when the window has surely ended.
    pub(crate) fn opens(&self, guard: Duration) -> Time {
        self.reset.after(guard)
    }

    /// Returns how many more requests may go.
    pub(crate) fn left(&self, reserved: u64, policy: &Policy) -> u64 {
        let left = self.remaining.saturating_sub(reserved);
        if policy.share >= 1.0 {
            return left;
        }
        left.min(policy.part_of(self.limit).saturating_sub(self.own + 1 + reserved))
    }

    /// Returns whether nothing is left even once all that is under way has been answered.
    pub(crate) fn is_spent(&self) -> bool {
        self.remaining == 0
    }

    /// Returns the own part of what is used in this window, once that can be told. What is
    /// under way counts as used already: only what is beyond that is surely strangers'.
    #[expect(clippy::cast_precision_loss, reason = "a ratio of requests in one window")]
    pub(crate) fn own_share(&self, reserved: u64) -> Option<f64> {
        let used = self.opened_with.saturating_sub(self.remaining);
        let used = used.saturating_sub(self.own + reserved);
        let foreign = self.foreign_before.saturating_add(used);
        let own = self.own + 1;
        let (here, all) = (own as f64, own as f64 + foreign as f64);
        match self.prior {
            // A few requests tell little, and a wrong share costs either speed or a refusal.
            Some(prior) => Some((here + prior * ENOUGH as f64) / (all + ENOUGH as f64)),
            None => (all >= ENOUGH as f64).then(|| here / all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_go_up_and_down_between_extremes_overflow_nothing() {
        let rate = |remaining| Rate { limit: u64::MAX, remaining, reset: Time(60_000_000) };
        let mut account = Account::open(rate(u64::MAX), (0, 1), None, Time(0));
        for _ in 0..3 {
            account.lower(&rate(0), false);
            assert!(account.own_share(0).is_none_or(|share| (0.0..=1.0).contains(&share)));
            account.lower(&rate(u64::MAX), true);
        }
        let later = Rate { reset: Time(120_000_000), ..rate(0) };
        let mut account = account.reopen(later, (0, 1), None);
        account.lower(&Rate { remaining: u64::MAX, ..later }, true);
        account.lower(&later, false);
        assert!(account.own_share(0).is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}
