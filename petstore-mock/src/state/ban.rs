//! The temporary ban of the specification's section 8, rule 4, for keys that keep sending before an
//! exhausted quota is reset. Pure functions of `now`.

use std::{collections::VecDeque, time::Duration};

use crate::clock::END;

/// When the service bans a key, and for how long.
///
/// The specification only says that repeated requests after a 429 may lead to a temporary ban. The
/// numbers are assumptions: more than 10 such requests within 60 s, then 300 s.
///
/// ```
/// use std::time::Duration;
/// use petstore_mock::BanPolicy;
///
/// let hour = Duration::from_secs(3_600);
/// let strict = BanPolicy { after: 0, length: hour, ..BanPolicy::default() };
/// assert_eq!(strict.within, Duration::from_secs(60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BanPolicy {
    /// The number of early requests (after a 429, and before the reset of the quota) without a ban, for
    /// each declared sender of the key, and at most 100,000. The next one causes a ban. Faults change
    /// nothing about that.
    pub after: u32,
    /// The period within which early requests are counted.
    pub within: Duration,
    /// The duration of the ban. Zero disables bans.
    pub length: Duration,
}

impl Default for BanPolicy {
    fn default() -> Self {
        Self {
            after: 10,
            within: Duration::from_secs(60),
            length: Duration::from_secs(300),
        }
    }
}

impl BanPolicy {
    /// The maximum of `after`, which bounds the size of a key's record.
    pub(crate) const MAX_AFTER: u32 = 100_000;
}

/// The early requests and the ban of one key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BanRecord {
    /// The end of the last `Retry-After`.
    told_until: Duration,
    /// When early requests arrived, oldest first: at most the policy's `after` + 1.
    strikes: VecDeque<Duration>,
    banned_until: Duration,
}

impl BanRecord {
    /// Records the arrival of a request. Returns the number of early requests so far, including this
    /// one, if it is early. If the key is banned afterwards, this request caused the ban.
    pub(super) fn arrive(&mut self, now: Duration, policy: BanPolicy) -> u32 {
        if now < self.banned_until || now >= self.told_until || policy.length.is_zero() {
            return 0;
        }
        while let Some(oldest) = self.strikes.front() {
            if oldest.saturating_add(policy.within) > now {
                break;
            }
            self.strikes.pop_front();
        }
        self.strikes.push_back(now);
        let strikes = u32::try_from(self.strikes.len()).unwrap_or(u32::MAX);
        if strikes > policy.after.min(BanPolicy::MAX_AFTER) {
            self.ban(now.saturating_add(policy.length));
        }
        strikes
    }

    /// Bans the key until this time.
    pub(crate) fn ban(&mut self, until: Duration) {
        *self = Self {
            banned_until: until.min(END),
            ..Self::default()
        };
    }

    /// Ends the ban, and clears the early requests.
    pub(crate) fn pardon(&mut self) {
        *self = Self::default();
    }

    /// Ends the current `Retry-After`. A ban stays.
    pub(crate) fn excuse(&mut self) {
        *self = Self {
            banned_until: self.banned_until,
            ..Self::default()
        };
    }

    /// Returns the end of the ban, if the key is banned at `now`.
    pub(crate) fn banned_until(&self, now: Duration) -> Option<Duration> {
        (now < self.banned_until).then_some(self.banned_until)
    }

    /// Returns the end of the last `Retry-After`, if it is in the future.
    pub(crate) fn waits_until(&self, now: Duration) -> Option<Duration> {
        (now < self.told_until).then_some(self.told_until)
    }

    /// Records a `Retry-After` that ends at `until`, in seconds since the Unix epoch.
    pub(crate) fn told(&mut self, until: u64) {
        self.told_until = Duration::from_secs(until).min(END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs(1_000) + Duration::from_secs_f64(seconds)
    }

    fn told_to_wait_a_minute() -> BanRecord {
        let mut record = BanRecord::default();
        record.told(1_060);
        record
    }

    fn policy() -> BanPolicy {
        BanPolicy::default()
    }

    #[test]
    fn the_11th_early_request_bans_exactly_so_long() {
        let mut record = told_to_wait_a_minute();
        for strikes in 1..=10 {
            assert_eq!(record.arrive(at(1.0), policy()), strikes);
            assert_eq!(record.banned_until(at(1.0)), None);
        }
        assert_eq!(record.arrive(at(1.5), policy()), 11);
        // A request during a ban does not lengthen it, and one after it is not early.
        for (now, until) in [
            (1.5, Some(at(301.5))),
            (301.25, Some(at(301.5))),
            (301.5, None),
            (400.0, None),
        ] {
            assert_eq!(record.arrive(at(now), policy()), 0, "{now}");
            assert_eq!(record.banned_until(at(now)), until, "{now}");
        }
    }

    #[test]
    fn counts_no_requests_in_time_and_none_before_the_period() {
        let mut record = told_to_wait_a_minute();
        assert_eq!(record.arrive(at(60.0), policy()), 0);
        for minute in 0..30_u32 {
            record.told(1_000_000);
            for strikes in 1..=10 {
                let now = at(f64::from(minute) * 60.0);
                assert_eq!(record.arrive(now, policy()), strikes, "{minute}");
            }
        }
    }

    #[test]
    fn a_policy_may_ban_at_once_or_never() {
        let mut record = told_to_wait_a_minute();
        let off = BanPolicy {
            length: Duration::ZERO,
            ..policy()
        };
        assert_eq!(record.arrive(at(1.0), off), 0);
        let strict = BanPolicy {
            after: 0,
            ..policy()
        };
        assert_eq!(record.arrive(at(1.0), strict), 1);
        assert!(record.banned_until(at(1.0)).is_some());
    }

    #[test]
    fn a_wait_and_a_ban_hold_until_their_end_or_a_lift() {
        let (soon, late) = (at(60.0), at(300.0));
        let mut record = told_to_wait_a_minute();
        let waits = [59.9, 60.0].map(|now| record.waits_until(at(now)));
        assert_eq!(waits, [Some(soon), None]);
        record.ban(late);
        let banned = [299.9, 300.0].map(|now| record.banned_until(at(now)));
        assert_eq!(banned, [Some(late), None]);
        assert_eq!(record.waits_until(at(0.0)), None);
        record.told(1_060);
        record.excuse();
        assert_eq!(record.waits_until(at(0.0)), None);
        assert_eq!(record.banned_until(at(0.0)), Some(late));
        record.pardon();
        assert_eq!(record, BanRecord::default());
    }
}
