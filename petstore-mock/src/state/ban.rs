//! The temporary ban of the specification's section 8, rule 4, for keys that keep sending during a
//! `Retry-After`. Pure functions of `now`.

use std::{collections::VecDeque, time::Duration};

use serde::{Deserialize, Serialize};

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
    /// The number of early requests (before `Retry-After` has elapsed) without a ban, at most
    /// 100,000. The next one causes a ban.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
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

    fn arrive(record: &mut BanRecord, now: Duration) -> Option<Duration> {
        record.arrive(now, policy());
        record.banned_until(now)
    }

    #[test]
    fn the_11th_request_of_a_told_wait_bans_exactly_so_long() {
        let mut record = told_to_wait_a_minute();
        for _ in 0..10 {
            assert_eq!(arrive(&mut record, at(1.0)), None);
        }
        assert_eq!(arrive(&mut record, at(1.5)), Some(at(301.5)));
        assert_eq!(arrive(&mut record, at(301.25)), Some(at(301.5)));
        assert_eq!(arrive(&mut record, at(301.5)), None);
    }

    #[test]
    fn counts_early_requests_until_the_one_that_causes_the_ban() {
        let mut record = told_to_wait_a_minute();
        for strikes in 1..=11 {
            assert_eq!(record.arrive(at(1.0), policy()), strikes);
        }
        assert_eq!(record.arrive(at(1.0), policy()), 0);
        assert_eq!(record.arrive(at(400.0), policy()), 0);
    }

    #[test]
    fn never_bans_a_client_that_waits() {
        let mut record = told_to_wait_a_minute();
        for _ in 0..1_000 {
            assert_eq!(arrive(&mut record, at(60.0)), None);
        }
    }

    #[test]
    fn forgets_requests_before_the_policys_period() {
        let mut record = BanRecord::default();
        for minute in 0..30_u32 {
            record.told(1_000_000);
            for _ in 0..10 {
                assert_eq!(arrive(&mut record, at(f64::from(minute) * 60.0)), None);
            }
        }
    }

    #[test]
    fn a_request_during_a_ban_does_not_lengthen_it() {
        let mut record = told_to_wait_a_minute();
        for _ in 0..11 {
            arrive(&mut record, at(0.0));
        }
        for second in 0..300_u32 {
            assert_eq!(arrive(&mut record, at(f64::from(second))), Some(at(300.0)));
        }
        assert_eq!(arrive(&mut record, at(300.0)), None);
        record.told(1_400);
        assert_eq!(arrive(&mut record, at(301.0)), None);
    }

    #[test]
    fn a_policy_without_tolerance_bans_immediately() {
        let mut record = told_to_wait_a_minute();
        let strict = BanPolicy {
            after: 0,
            ..policy()
        };
        record.arrive(at(1.0), strict);
        assert!(record.banned_until(at(1.0)).is_some());
    }

    #[test]
    fn a_ban_of_length_zero_is_disabled() {
        let mut record = told_to_wait_a_minute();
        for _ in 0..100 {
            let off = BanPolicy {
                length: Duration::ZERO,
                ..policy()
            };
            assert_eq!(record.arrive(at(1.0), off), 0);
        }
        assert!(record.strikes.is_empty());
    }

    #[test]
    fn a_wait_and_a_ban_hold_until_their_end_or_a_lift() {
        let (soon, late) = (at(60.0), at(300.0));
        let mut record = told_to_wait_a_minute();
        assert_eq!(
            [59.9, 60.0].map(|now| record.waits_until(at(now))),
            [Some(soon), None]
        );
        record.ban(late);
        assert_eq!(
            [299.9, 300.0].map(|now| record.banned_until(at(now))),
            [Some(late), None]
        );
        assert_eq!(record.waits_until(at(0.0)), None);
        record.told(1_060);
        record.excuse();
        assert_eq!(
            (record.waits_until(at(0.0)), record.banned_until(at(0.0))),
            (None, Some(late))
        );
        record.pardon();
        assert_eq!(record, BanRecord::default());
    }

    #[test]
    fn holds_a_bounded_number_of_strikes() {
        let endless = BanPolicy {
            after: u32::MAX,
            within: Duration::MAX,
            ..policy()
        };
        let mut record = told_to_wait_a_minute();
        let mut banned = false;
        for _ in 0..=BanPolicy::MAX_AFTER {
            record.arrive(at(1.0), endless);
            banned |= record.banned_until(at(1.0)).is_some();
            assert!(record.strikes.len() <= BanPolicy::MAX_AFTER as usize + 1);
        }
        assert!(banned);
    }
}
