//! Own requests in the service's current minute and day: for callers who know their plan, where
//! the service does not show every quota that is in force.

use super::policy::Policy;
use super::time::Time;
use super::verdict::Block;
use crate::error::Quota;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

#[derive(Debug, Default)]
pub(crate) struct Own {
    minute: Count,
    day: Count,
}

#[derive(Debug, Default)]
struct Count {
    /// Which window this is, counted from 1970.
    window: i64,
    sent: u64,
    /// Of those, how many the service may count into the next window: its clock may be further.
    late: u64,
}

impl Own {
    /// Counts requests whose answers came when the service's clock shows `now` at least. Those that
    /// are still under way are the caller's to add.
    pub(crate) fn count(&mut self, requests: u32, now: Time) {
        self.minute.count(requests.into(), now, MINUTE);
        self.day.count(requests.into(), now, DAY);
    }

    /// Returns how many more requests the caller's plan allows.
    pub(crate) fn left(&self, now: Time, policy: &Policy) -> u64 {
        let Some((minute, day)) = policy.plan else { return u64::MAX };
        let minute = policy.part_of(minute).saturating_sub(self.minute.sent_in(now, MINUTE));
        minute.min(policy.part_of(day).saturating_sub(self.day.sent_in(now, DAY)))
    }

    /// Returns what holds requests back, where the caller's plan is used up; `more` requests are
    /// taken for used as well.
    pub(crate) fn used_up(&self, now: Time, more: u64, policy: &Policy) -> Option<Block> {
        let (minute, day) = policy.plan?;
        let left = |limit| policy.part_of(limit).saturating_sub(more);
        let minute = self.minute.used_up(now, MINUTE, left(minute), Quota::Minute);
        let day = self.day.used_up(now, DAY, left(day), Quota::Day);
        minute.into_iter().chain(day).max_by_key(|block| block.until)
    }
}

impl Count {
    fn count(&mut self, requests: u64, now: Time, length: i64) {
        let window = now.0.div_euclid(length);
        if window != self.window {
            let carried = if window == self.window + 1 { self.late } else { 0 };
            *self = Self { window, sent: carried, late: 0 };
        }
        self.sent += requests;
        if (now.0 + SECOND).div_euclid(length) > window {
            self.late += requests;
        }
    }

    fn sent_in(&self, now: Time, length: i64) -> u64 {
        match now.0.div_euclid(length) - self.window {
            0 => self.sent,
            1 => self.late,
            _ => 0,
        }
    }

    fn used_up(&self, now: Time, length: i64, limit: u64, quota: Quota) -> Option<Block> {
        let until = Time((now.0.div_euclid(length) + 1) * length);
        let spent = self.sent_in(now, length) >= limit;
        spent.then_some(Block { until, named: until, quota })
    }
}

impl Policy {
    /// Returns the caller's part of a limit, at least one request.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a part of a limit: rounding down is meant, and `as` saturates"
    )]
    pub(crate) fn part_of(&self, limit: u64) -> u64 {
        if self.share >= 1.0 { limit } else { ((limit as f64 * self.share) as u64).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time(1_800_000_000 * SECOND + seconds * SECOND)
    }

    #[test]
    fn counts_the_minute_and_the_day_at_once() {
        let policy = Policy { plan: Some((2, 3)), ..Policy::default() };
        let mut own = Own::default();
        own.count(1, at(0));
        assert_eq!(own.used_up(at(1), 0, &policy), None);
        own.count(1, at(1));
        let block = own.used_up(at(2), 0, &policy).unwrap();
        assert_eq!((block.until, block.quota), (at(60), Quota::Minute));
        own.count(1, at(60));
        assert_eq!(own.used_up(at(61), 0, &policy).unwrap().quota, Quota::Day);
        assert_eq!(own.used_up(at(24 * 3600), 0, &policy), None);
    }

    #[test]
    fn what_is_sent_at_the_very_end_counts_for_both_windows() {
        let policy = Policy { plan: Some((2, 1_000)), ..Policy::default() };
        let mut own = Own::default();
        own.count(1, Time(at(60).0 - SECOND / 2));
        own.count(1, at(60));
        assert!(own.used_up(at(61), 0, &policy).is_some());
    }
}
