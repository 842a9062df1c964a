//! Own requests in the service's current minute and day: for callers who know their plan, where
//! the service does not show every quota that is in force.

use serde::{Deserialize, Serialize};

use super::policy::Policy;
use super::time::Time;
use super::verdict::Block;
use crate::error::Quota;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Own {
    minute: Count,
    day: Count,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Count {
    /// Which window this is, counted from 1970.
    window: i64,
    sent: u64,
    /// Of those, how many the service may count into the next window: its clock may be further.
    late: u64,
}

impl Own {
    /// Counts requests that were let in when the service's clock showed `now` at least, or may have
    /// been. Those that are still under way are the caller's to add.
    pub(crate) fn count(&mut self, requests: u32, now: Time) {
        self.minute.count(requests.into(), now, MINUTE);
        self.day.count(requests.into(), now, DAY);
    }

    /// Counts requests that were lost, and may have been let in when the last of them was sent.
    pub(crate) fn count_lost(&mut self, requests: u32, sent: Time) {
        for (count, length) in [(&mut self.minute, MINUTE), (&mut self.day, DAY)] {
            if sent.0.div_euclid(length) >= count.window {
                count.count(requests.into(), sent, length);
            }
        }
    }

    /// Returns how many more requests the caller's plan allows.
    pub(crate) fn left(&self, now: Time, open: &Open, policy: &Policy) -> u64 {
        let Some((minute, day)) = policy.plan else { return u64::MAX };
        let left = |count: &Count, limit, length| {
            let used = count.sent_in(now, length) + open.in_flight + open.lost_in(now, length);
            policy.part_of(limit).saturating_sub(used)
        };
        left(&self.minute, minute, MINUTE).min(left(&self.day, day, DAY))
    }

    /// Returns what holds requests back, where the caller's plan is used up. Lost requests count
    /// where no answer can settle them, for none is under way.
    pub(crate) fn used_up(&self, now: Time, open: &Open, policy: &Policy) -> Option<Block> {
        let (minute, day) = policy.plan?;
        let block = |count: &Count, limit, length, quota| {
            let lost = if open.in_flight == 0 { open.lost_in(now, length) } else { 0 };
            count.used_up(now, length, policy.part_of(limit).saturating_sub(lost), quota)
        };
        let minute = block(&self.minute, minute, MINUTE, Quota::Minute);
        let day = block(&self.day, day, DAY, Quota::Day);
        minute.into_iter().chain(day).max_by_key(|block| block.until)
    }
}

/// Requests that no answer has told of.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Open {
    pub(crate) in_flight: u64,
    pub(crate) lost: u64,
    /// When the last of the lost was sent.
    pub(crate) last_lost: Option<Time>,
}

impl Open {
    /// Returns how many of the lost may count in the current window.
    fn lost_in(&self, now: Time, length: i64) -> u64 {
        let begun = now.0.div_euclid(length) * length;
        let over = self.last_lost.is_none_or(|last| last.0 + 2 * SECOND < begun);
        if over { 0 } else { self.lost }
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
        let (mut own, none) = (Own::default(), Open::default());
        own.count(1, at(0));
        assert_eq!(own.used_up(at(1), &none, &policy), None);
        own.count(1, at(1));
        let block = own.used_up(at(2), &none, &policy).unwrap();
        assert_eq!((block.until, block.quota), (at(60), Quota::Minute));
        own.count(1, at(60));
        assert_eq!(own.used_up(at(61), &none, &policy).unwrap().quota, Quota::Day);
        assert_eq!(own.used_up(at(24 * 3600), &none, &policy), None);
    }

    #[test]
    fn what_is_sent_at_the_very_end_counts_for_both_windows() {
        let policy = Policy { plan: Some((2, 1_000)), ..Policy::default() };
        let (mut own, none) = (Own::default(), Open::default());
        own.count(1, Time(at(60).0 - SECOND / 2));
        own.count(1, at(60));
        assert!(own.used_up(at(61), &none, &policy).is_some());
    }

    #[test]
    fn what_was_lost_counts_in_its_own_minute_and_day_alone() {
        let policy = Policy { plan: Some((2, 5)), ..Policy::default() };
        let (own, lost) = (Own::default(), |last| Open { in_flight: 0, lost: 4, last_lost: last });
        let open = lost(Some(at(10)));
        assert_eq!(own.used_up(at(11), &open, &policy).unwrap().until, at(60));
        assert_eq!(
            (own.used_up(at(60), &open, &policy), own.left(at(60), &open, &policy)),
            (None, 1)
        );
        assert!(own.used_up(at(60), &lost(Some(at(59))), &policy).is_some(), "it may arrive late");
    }
}
