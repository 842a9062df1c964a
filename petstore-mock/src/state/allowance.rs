//! The quotas of a key: one per minute, one per day, and perhaps one per hour.

use std::time::Duration;

use strum::EnumString;

use super::quota::{Period, Quota, Used, Window};
use crate::{exchange::Rate, plan::Plan};

/// The quota that the `X-RateLimit-*` headers describe.
///
/// The specification does not show this. Assumption: [`RateHeaders::Tightest`] by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumString)]
#[cfg_attr(test, derive(strum::VariantNames))]
#[strum(serialize_all = "lowercase")]
#[strum(parse_err_ty = ParseRateHeadersError, parse_err_fn = unknown_rate_headers)]
#[non_exhaustive]
pub enum RateHeaders {
    /// The quota with the fewest requests left; that of the shorter period if two are equal.
    #[default]
    Tightest,
    /// Always the quota per minute.
    Minute,
    /// Always the quota per hour; the quota per minute if the plan has none.
    Hour,
    /// Always the quota per day.
    Day,
}

/// The error for a text that is not the name of one of [`RateHeaders`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rate headers are tightest, minute, hour or day")]
pub struct ParseRateHeadersError;

fn unknown_rate_headers(_: &str) -> ParseRateHeadersError {
    ParseRateHeadersError
}

/// A value for the quota of each period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PerPeriod<T> {
    pub(crate) minute: T,
    /// `None` if the plan has no such quota.
    pub(crate) hour: Option<T>,
    pub(crate) day: T,
}

impl<T> PerPeriod<T> {
    /// Returns the values, that of the shortest period first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let Self { minute, hour, day } = self;
        [minute].into_iter().chain(hour).chain([day])
    }

    /// Returns the values, that of the shortest period first.
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let Self { minute, hour, day } = self;
        [minute].into_iter().chain(hour).chain([day])
    }
}

/// The exhausted quota because of which a request is refused. If several are exhausted, it is the
/// one that resets last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted {
    pub(crate) period: Period,
    pub(crate) rate: Rate,
}

/// The quotas of a key.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    quotas: PerPeriod<Quota>,
    window: Window,
}

impl Allowance {
    pub(crate) fn new(plan: Plan, window: Window) -> Self {
        let quota = |limit, period| Quota::new(limit, period, window);
        let quotas = PerPeriod {
            minute: quota(plan.per_minute(), Period::Minute),
            hour: plan.per_hour().map(|limit| quota(limit, Period::Hour)),
            day: quota(plan.per_day(), Period::Day),
        };
        Self { quotas, window }
    }

    /// Returns the counted requests and the rate of each quota at `now`.
    pub(crate) fn usage(&mut self, now: Duration) -> PerPeriod<(u64, Rate)> {
        let usage = |quota: &mut Quota| {
            let rate = quota.rate(now);
            (quota.counted(), rate)
        };
        PerPeriod {
            minute: usage(&mut self.quotas.minute),
            hour: self.quotas.hour.as_mut().map(usage),
            day: usage(&mut self.quotas.day),
        }
    }

    /// Sets the limits. Counted requests stay counted. A quota that the plan before did not have
    /// starts unused.
    pub(crate) fn set_plan(&mut self, plan: Plan) {
        let mut next = Self::new(plan, self.window).quotas;
        let PerPeriod { minute, hour, day } = &self.quotas;
        next.minute.take_over(minute);
        if let (Some(next), Some(hour)) = (&mut next.hour, hour) {
            next.take_over(hour);
        }
        next.day.take_over(day);
        self.quotas = next;
    }

    /// Returns the counted requests of each quota, for a snapshot.
    pub(crate) fn used(&self) -> PerPeriod<Used> {
        let used = |quota: &Quota| quota.used().clone();
        PerPeriod {
            minute: used(&self.quotas.minute),
            hour: self.quotas.hour.as_ref().map(used),
            day: used(&self.quotas.day),
        }
    }

    /// Sets the counted requests of each quota. Returns false if they are invalid for the windows or
    /// the plan.
    pub(crate) fn set_used(&mut self, used: PerPeriod<Used>) -> bool {
        let PerPeriod { minute, hour, day } = used;
        let is_hour_possible = match (&mut self.quotas.hour, hour) {
            (Some(quota), Some(used)) => quota.set_used(used),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.quotas.minute.set_used(minute) && is_hour_possible && self.quotas.day.set_used(day)
    }

    /// Counts a request in all quotas, or refuses it without counting.
    pub(crate) fn admit(&mut self, now: Duration) -> Result<(), Exhausted> {
        let quotas = self.quotas.iter_mut();
        let rates = quotas.map(|quota| (quota.period(), quota.rate(now)));
        let exhausted = rates.filter(|(_, rate)| rate.remaining == 0);
        if let Some((period, rate)) = exhausted.max_by_key(|(_, rate)| rate.reset) {
            return Err(Exhausted { period, rate });
        }
        self.quotas.iter_mut().for_each(|quota| quota.count(now));
        Ok(())
    }

    /// Returns the values of the headers at `now`.
    pub(crate) fn rate(&mut self, now: Duration, headers: RateHeaders) -> Rate {
        let PerPeriod { minute, hour, day } = &mut self.quotas;
        match headers {
            RateHeaders::Minute => minute.rate(now),
            RateHeaders::Hour => hour.as_mut().unwrap_or(minute).rate(now),
            RateHeaders::Day => day.rate(now),
            RateHeaders::Tightest => {
                let mut tightest = minute.rate(now);
                for rate in hour.iter_mut().chain([day]).map(|quota| quota.rate(now)) {
                    if rate.remaining < tightest.remaining {
                        tightest = rate;
                    }
                }
                tightest
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantNames as _;

    use super::*;

    #[test]
    fn the_error_of_an_unknown_name_lists_all() {
        let problem = "other".parse::<RateHeaders>().unwrap_err().to_string();
        for name in RateHeaders::VARIANTS {
            assert!(problem.contains(name), "{problem}");
        }
    }

    /// Midnight UTC: 2025-01-01T00:00:00Z.
    const START: u64 = 1_735_689_600;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(START + seconds)
    }

    fn free() -> Allowance {
        Allowance::new(Plan::Free, Window::Fixed)
    }

    fn send(allowance: &mut Allowance, now: Duration, times: u32) {
        for _ in 0..times {
            allowance.admit(now).unwrap();
        }
    }

    #[test]
    fn refuses_the_61st_request_on_a_free_key() {
        let mut allowance = free();
        send(&mut allowance, at(1), 60);
        let refusal = allowance.admit(at(2)).unwrap_err();
        assert_eq!((refusal.period, refusal.rate.limit), (Period::Minute, 60));
        assert_eq!(refusal.rate.reset, START + 60);
        assert_eq!(allowance.admit(at(60)), Ok(()));
    }

    #[test]
    fn refuses_the_1001st_request_of_a_day_on_a_free_key() {
        let mut allowance = free();
        for minute in 0..20 {
            send(&mut allowance, at(minute * 60), 50);
        }
        let refusal = allowance.admit(at(1_200)).unwrap_err();
        assert_eq!(
            (refusal.period, refusal.rate.reset),
            (Period::Day, START + 86_400)
        );
        assert_eq!(allowance.admit(at(86_400)), Ok(()));
    }

    #[test]
    fn a_refused_request_uses_nothing() {
        let mut allowance = free();
        send(&mut allowance, at(0), 60);
        for _ in 0..500 {
            assert!(allowance.admit(at(1)).is_err());
        }
        assert_eq!(allowance.rate(at(1), RateHeaders::Day).remaining, 940);
    }

    #[test]
    fn names_the_later_quota_when_both_are_used_up() {
        let mut allowance = Allowance::new(Plan::enterprise(5, 5), Window::Fixed);
        send(&mut allowance, at(0), 5);
        assert_eq!(allowance.admit(at(0)).unwrap_err().period, Period::Day);
        let mut last_minute = Allowance::new(Plan::enterprise(5, 5), Window::Fixed);
        send(&mut last_minute, at(86_399), 5);
        assert_eq!(
            last_minute.admit(at(86_399)).unwrap_err().rate.reset,
            START + 86_400
        );
    }

    #[test]
    fn the_quota_with_the_fewest_requests_left_is_described() {
        let mut allowance = Allowance::new(Plan::enterprise(3, 3), Window::Fixed);
        send(&mut allowance, at(0), 1);
        assert_eq!(
            allowance.rate(at(0), RateHeaders::Tightest).reset,
            START + 60
        );
        let in_the_next_minute = allowance.rate(at(60), RateHeaders::Tightest);
        assert_eq!(in_the_next_minute.remaining, 2);
        assert_eq!(in_the_next_minute.reset, START + 86_400);
        assert_eq!(allowance.rate(at(60), RateHeaders::Minute).remaining, 3);
    }

    #[test]
    fn what_was_used_is_restored_and_counts_against_other_limits() {
        let mut allowance = free();
        send(&mut allowance, at(61), 3);
        let used = PerPeriod {
            minute: Used::from([(START + 60, 3)]),
            hour: None,
            day: Used::from([(START, 3)]),
        };
        assert_eq!(allowance.used(), used);
        let mut restored = free();
        assert!(restored.set_used(used));
        restored.set_plan(Plan::enterprise(4, 5));
        let usage = restored.usage(at(62));
        let [minute, day] = [usage.minute, usage.day].map(|(count, rate)| (count, rate.remaining));
        assert_eq!((minute, day), ((3, 1), (3, 2)));
        let mut impossible = restored.used();
        impossible.minute = Used::from([(START + 1, 3)]);
        assert!(!restored.set_used(impossible));
    }

    #[test]
    fn an_hour_is_counted_beside_the_minute_and_the_day() {
        let plan = Plan::enterprise(5, 100).with_per_hour(7);
        let mut allowance = Allowance::new(plan, Window::Fixed);
        send(&mut allowance, at(59), 5);
        assert_eq!(allowance.admit(at(59)).unwrap_err().period, Period::Minute);
        send(&mut allowance, at(60), 2);
        let tightest = allowance.rate(at(60), RateHeaders::Tightest);
        assert_eq!((tightest.limit, tightest.remaining), (7, 0));
        assert_eq!(tightest, allowance.rate(at(60), RateHeaders::Hour));
        let refusal = allowance.admit(at(60)).unwrap_err();
        assert_eq!(
            (refusal.period, refusal.rate.reset),
            (Period::Hour, START + 3_600)
        );
        assert_eq!(allowance.admit(at(3_600)), Ok(()));
        assert_eq!(free().rate(at(0), RateHeaders::Hour).limit, 60);
    }

    #[test]
    fn another_plan_keeps_the_hours_count_and_one_without_drops_it() {
        let hourly = |limit| Plan::enterprise(50, 100).with_per_hour(limit);
        let mut allowance = Allowance::new(Plan::enterprise(50, 100), Window::Fixed);
        send(&mut allowance, at(0), 3);
        assert_eq!(allowance.usage(at(0)).hour, None);
        allowance.set_plan(hourly(9));
        send(&mut allowance, at(0), 4);
        allowance.set_plan(hourly(5));
        let usage = allowance.usage(at(0));
        let hour = usage.hour.map(|(count, rate)| (count, rate.remaining));
        assert_eq!((usage.minute.0, hour, usage.day.0), (7, Some((4, 1)), 7));
        let mut used = allowance.used();
        used.hour = None;
        assert!(!allowance.set_used(used));
    }

    #[test]
    fn a_quota_of_0_refuses_everything() {
        assert!(
            Allowance::new(Plan::enterprise(0, 5), Window::Sliding)
                .admit(at(0))
                .is_err()
        );
    }
}
