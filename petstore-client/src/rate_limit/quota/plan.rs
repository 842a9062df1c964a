//! Counts the own requests with the key in the service's current minute and day. Clients with a configured
//! plan need that, because the service may not show every quota.

use serde::{Deserialize, Serialize};

use super::clock::{MINUTE, SECOND, ServiceTime};
use super::outstanding::MAX_COUNT;
use crate::rate_limit::view::{Plan, Quota};

const DAY: i64 = 24 * 60 * MINUTE;

/// The own requests that the service has counted, per minute and day.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PlanUsage {
    minute: Usage,
    day: Usage,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Usage {
    /// The window's number, counted from 1970.
    window: i64,
    used: u64,
    /// How many of these requests the service may count in the next window, because its clock may
    /// be ahead.
    late: u64,
}

/// What a plan leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanLeft {
    quota: Quota,
    left: u64,
    opened: ServiceTime,
    reset: ServiceTime,
}

impl PlanLeft {
    pub(crate) fn quota(&self) -> Quota {
        self.quota
    }

    /// Returns the requests left, not counting outstanding ones.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Returns when the window was opened.
    pub(crate) fn opened(&self) -> ServiceTime {
        self.opened
    }

    pub(crate) fn reset(&self) -> ServiceTime {
        self.reset
    }
}

impl PlanUsage {
    /// Counts requests that the service has accepted, or may have accepted. Its clock showed at
    /// least `service_now` then.
    pub(crate) fn count(&mut self, requests: u32, service_now: ServiceTime) {
        self.minute.count(requests.into(), service_now, MINUTE);
        self.day.count(requests.into(), service_now, DAY);
    }

    /// Takes over the requests that another copy has counted, if it has counted more.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.minute.merge(&other.minute);
        self.day.merge(&other.day);
    }

    pub(crate) fn is_plausible(&self) -> bool {
        [&self.minute, &self.day].iter().all(|usage| {
            let counts = [usage.used, usage.late, usage.window.unsigned_abs()];
            counts.iter().all(|count| *count < MAX_COUNT)
        })
    }

    /// Returns how much each quota of the plan leaves. `part_of` returns the client's part of a
    /// limit.
    pub(crate) fn left(
        &self,
        plan: Plan,
        service_now: ServiceTime,
        part_of: impl Fn(u64) -> u64,
    ) -> impl Iterator<Item = PlanLeft> {
        let quotas = [
            (&self.minute, plan.minute_limit(), MINUTE, Quota::Minute),
            (&self.day, plan.day_limit(), DAY, Quota::Day),
        ];
        quotas
            .into_iter()
            .filter_map(move |(usage, limit, length, quota)| {
                let limit = part_of(limit?);
                let left = limit.saturating_sub(usage.used_in(service_now, length));
                let opened = ServiceTime(service_now.0.div_euclid(length).saturating_mul(length));
                Some(PlanLeft {
                    quota,
                    left,
                    opened,
                    reset: opened.moved(length),
                })
            })
    }
}

impl Usage {
    fn count(&mut self, requests: u64, service_now: ServiceTime, length: i64) {
        let window = service_now.0.div_euclid(length);
        if window < self.window {
            return;
        }
        if window > self.window {
            let carried = if window == self.window + 1 {
                self.late
            } else {
                0
            };
            *self = Self {
                window,
                used: carried,
                late: 0,
            };
        }
        self.used += requests;
        if service_now.0.saturating_add(SECOND).div_euclid(length) > window {
            self.late += requests;
        }
    }

    fn merge(&mut self, other: &Self) {
        if other.window > self.window {
            self.clone_from(other);
        } else if other.window == self.window {
            self.used = self.used.max(other.used);
            self.late = self.late.max(other.late);
        }
    }

    fn used_in(&self, service_now: ServiceTime, length: i64) -> u64 {
        match service_now.0.div_euclid(length) - self.window {
            0 => self.used,
            1 => self.late,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> ServiceTime {
        ServiceTime(1_800_000_000 * SECOND + seconds * SECOND)
    }

    fn left(usage: &PlanUsage, plan: Plan, now: ServiceTime) -> Vec<(u64, ServiceTime)> {
        usage
            .left(plan, now, |limit| limit)
            .map(|left| (left.left, left.reset))
            .collect()
    }

    #[test]
    fn counts_the_minute_and_the_day_at_once() {
        let plan = Plan::custom().per_minute(2).per_day(3);
        let mut usage = PlanUsage::default();
        let midnight = at(16 * 3600);
        usage.count(1, at(0));
        usage.count(1, at(1));
        assert_eq!(left(&usage, plan, at(2)), [(0, at(60)), (1, midnight)]);
        usage.count(1, at(60));
        assert_eq!(left(&usage, plan, at(61)), [(1, at(120)), (0, midnight)]);
        assert_eq!(left(&usage, plan, at(24 * 3600))[1], (3, at(40 * 3600)));
    }

    #[test]
    fn what_is_sent_at_the_very_end_counts_for_both_windows() {
        let plan = Plan::custom().per_minute(2);
        let mut usage = PlanUsage::default();
        usage.count(1, ServiceTime(at(60).0 - SECOND / 2));
        assert_eq!(left(&usage, plan, at(61)), [(1, at(120))]);
        assert_eq!(left(&usage, plan, at(121)), [(2, at(180))]);
        usage.count(1, at(60));
        assert_eq!(left(&usage, plan, at(61)), [(0, at(120))]);
    }

    #[test]
    fn of_two_copies_the_one_that_counted_more_decides() {
        let plan = Plan::custom().per_minute(9).per_day(99);
        let counted = |requests, seconds| {
            let mut usage = PlanUsage::default();
            usage.count(requests, at(seconds));
            usage
        };
        for (requests, seconds, minute, day) in [
            (3, 1, 6, 96),
            (1, 1, 7, 97),
            (1, 61, 8, 97),
            (5, -59, 7, 94),
        ] {
            let mut merged = counted(2, 1);
            merged.merge(&counted(requests, seconds));
            let left: Vec<_> = left(&merged, plan, at(seconds.max(1)));
            assert_eq!(
                [left[0].0, left[1].0],
                [minute, day],
                "{requests} {seconds}"
            );
        }
        // The last second may count in the next minute.
        let mut merged = counted(1, 59);
        merged.merge(&counted(4, 59));
        assert_eq!(left(&merged, plan, at(60))[0].0, 5);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_empty_the_count() {
        let plan = Plan::custom().per_day(5);
        let mut usage = PlanUsage::default();
        usage.count(3, at(0));
        usage.count(1, at(-2 * 24 * 3600));
        assert_eq!(left(&usage, plan, at(0))[0].0, 2);
    }
}
