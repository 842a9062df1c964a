//! The quotas of a key (specification, section 8): a limit, a window and the requests counted in it.
//! Pure functions of `now`.

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use crate::{
    clock::{instant, serialize_seconds},
    exchange::Rate,
    plan::Plan,
};

/// The kind of a quota's window.
///
/// The specification does not show this. Assumption: [`Window::Fixed`] by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Window {
    /// Fixed windows, aligned to the clock's minute and the UTC day. The quota resets when a new window
    /// begins.
    #[default]
    Fixed,
    /// Sliding windows: the last 60 and 86,400 seconds.
    ///
    /// Requests are counted per second. A request leaves the window at the start of the second 60
    /// (86,400) seconds after its own. `X-RateLimit-Reset` is when the oldest request leaves, or
    /// the end of a window that starts now if none is counted.
    Sliding,
}

/// The quota that the `X-RateLimit-*` headers describe.
///
/// The specification does not show this. Assumption: [`RateHeaders::Tightest`] by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RateHeaders {
    /// The quota with the fewest requests left; that of the shorter period if two are equal.
    #[default]
    Tightest,
    /// Always the quota per minute.
    Minute,
    /// Always the quota per day.
    Day,
}

/// The period of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Period {
    Minute,
    Day,
}

impl Period {
    const fn seconds(self) -> u64 {
        match self {
            Self::Minute => 60,
            Self::Day => 86_400,
        }
    }

    /// Returns the period with its article, as in "60 requests a minute".
    pub(crate) const fn with_article(self) -> &'static str {
        match self {
            Self::Minute => "a minute",
            Self::Day => "a day",
        }
    }
}

/// A quota and its counted requests.
pub(crate) struct Quota {
    limit: u32,
    period: Period,
    window: Window,
    /// The counted requests: ascending seconds, each with a number of requests. In a fixed window, the
    /// second is that in which the window began. Each entry leaves the window a period later.
    used: VecDeque<(u64, u64)>,
    /// The sum of the counted requests.
    count: u64,
}

impl Quota {
    pub(crate) fn new(limit: u32, period: Period, window: Window) -> Self {
        Self {
            limit,
            period,
            window,
            used: VecDeque::new(),
            count: 0,
        }
    }

    /// Returns the second in which a request at `now` is counted.
    fn counted_at(&self, now: Duration) -> u64 {
        match self.window {
            Window::Fixed => now.as_secs() - now.as_secs() % self.period.seconds(),
            Window::Sliding => now.as_secs(),
        }
    }

    /// Returns the values of the rate headers at `now`.
    pub(crate) fn rate(&mut self, now: Duration) -> Rate {
        self.forget(now);
        let oldest = self
            .used
            .front()
            .map_or_else(|| self.counted_at(now), |(at, _)| *at);
        let reset = oldest.saturating_add(self.period.seconds());
        let left = u64::from(self.limit).saturating_sub(self.count);
        Rate {
            limit: self.limit,
            remaining: u32::try_from(left).unwrap_or(0),
            reset,
        }
    }

    /// Counts a request that was admitted at `now`.
    fn count(&mut self, now: Duration) {
        self.forget(now);
        let now = self.counted_at(now);
        self.count = self.count.saturating_add(1);
        match self.used.back_mut() {
            // `>=`, not `==`: the log must stay sorted even if the clock goes back.
            Some((at, here)) if *at >= now => *here = here.saturating_add(1),
            _ => self.used.push_back((now, 1)),
        }
    }

    /// Drops the requests that have left the window by `now`.
    fn forget(&mut self, now: Duration) {
        while let Some((at, here)) = self.used.front()
            && at.saturating_add(self.period.seconds()) <= now.as_secs()
        {
            self.count = self.count.saturating_sub(*here);
            self.used.pop_front();
        }
    }
}

/// A quota at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QuotaUsage {
    /// The requests that it allows.
    pub limit: u32,
    /// The used requests. They may exceed the limit after that was lowered.
    pub used: u64,
    /// The requests left.
    pub remaining: u32,
    /// When it resets: the value of `X-RateLimit-Reset`.
    #[serde(serialize_with = "serialize_seconds")]
    pub reset: SystemTime,
}

/// The quotas of a key.
pub(crate) struct Allowance {
    minute: Quota,
    day: Quota,
}

impl Allowance {
    pub(crate) fn new(plan: Plan, window: Window) -> Self {
        Self {
            minute: Quota::new(plan.per_minute(), Period::Minute, window),
            day: Quota::new(plan.per_day(), Period::Day, window),
        }
    }

    /// Returns the usage of the minute's and the day's quota at `now`.
    pub(super) fn usage(&mut self, now: Duration) -> [QuotaUsage; 2] {
        [&mut self.minute, &mut self.day].map(|quota| {
            let rate = quota.rate(now);
            QuotaUsage {
                limit: rate.limit,
                used: quota.count,
                remaining: rate.remaining,
                reset: instant(Duration::from_secs(rate.reset)),
            }
        })
    }

    /// Sets the limits. Counted requests stay counted.
    pub(super) fn set_plan(&mut self, plan: Plan) {
        self.minute.limit = plan.per_minute();
        self.day.limit = plan.per_day();
    }

    /// Counts a request in both quotas, or refuses it without counting. The error is the exhausted quota,
    /// of several the one that resets last.
    pub(super) fn admit(&mut self, now: Duration) -> Result<(), (Period, Rate)> {
        let quotas = [&mut self.minute, &mut self.day];
        let exhausted = quotas.into_iter().filter_map(|quota| {
            let (period, rate) = (quota.period, quota.rate(now));
            (rate.remaining == 0).then_some((period, rate))
        });
        if let Some(exhausted) = exhausted.max_by_key(|(_, rate)| rate.reset) {
            return Err(exhausted);
        }
        self.minute.count(now);
        self.day.count(now);
        Ok(())
    }

    /// Returns the values of the headers at `now`.
    pub(super) fn rate(&mut self, now: Duration, headers: RateHeaders) -> Rate {
        let (minute, day) = (self.minute.rate(now), self.day.rate(now));
        match headers {
            RateHeaders::Tightest if day.remaining < minute.remaining => day,
            RateHeaders::Tightest | RateHeaders::Minute => minute,
            RateHeaders::Day => day,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minute that begins on a minute: 2025-01-01T00:00:00Z.
    const START: u64 = 1_735_689_600;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_secs(START) + Duration::from_millis(milliseconds)
    }

    fn used(quota: &mut Quota, now: Duration, times: u32) -> Rate {
        for _ in 0..times {
            quota.count(now);
        }
        quota.rate(now)
    }

    #[test]
    fn a_fixed_window_ends_with_the_clocks_minute() {
        let mut quota = Quota::new(60, Period::Minute, Window::Fixed);
        let rate = used(&mut quota, at(12_345), 60);
        assert_eq!((rate.remaining, rate.reset), (0, START + 60));
        assert_eq!(quota.rate(at(59_999)).remaining, 0);
        let next = quota.rate(at(60_000));
        assert_eq!((next.remaining, next.reset), (60, START + 120));
    }

    #[test]
    fn a_sliding_window_releases_each_request_separately() {
        let mut quota = Quota::new(3, Period::Minute, Window::Sliding);
        assert_eq!(quota.rate(at(999)).reset, START + 60);
        used(&mut quota, at(0), 1);
        let rate = used(&mut quota, at(10_500), 2);
        assert_eq!((rate.remaining, rate.reset), (0, START + 60));
        let one_back = quota.rate(at(60_000));
        assert_eq!((one_back.remaining, one_back.reset), (1, START + 70));
        assert_eq!(quota.rate(at(69_999)).remaining, 1);
        assert_eq!(quota.rate(at(70_000)).remaining, 3);
    }

    #[test]
    fn a_clock_that_goes_back_releases_no_requests() {
        for window in [Window::Fixed, Window::Sliding] {
            let mut quota = Quota::new(3, Period::Minute, window);
            used(&mut quota, at(120_000), 2);
            let rate = used(&mut quota, at(0), 1);
            assert_eq!(rate.remaining, 0, "{window:?}");
            assert!(rate.reset > START + 120, "{window:?}");
        }
    }

    fn after(seconds: u64) -> Duration {
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

    /// The counted requests, and those that are left.
    fn left(allowance: &mut Allowance, now: Duration) -> [(u64, u32); 2] {
        let usage = allowance.usage(now);
        usage.map(|quota| (quota.used, quota.remaining))
    }

    #[test]
    fn a_refused_request_uses_nothing() {
        let mut allowance = free();
        send(&mut allowance, after(0), 60);
        for _ in 0..500 {
            assert!(allowance.admit(after(1)).is_err());
        }
        assert_eq!(allowance.rate(after(1), RateHeaders::Day).remaining, 940);
    }

    #[test]
    fn names_the_later_quota_when_both_are_used_up() {
        let mut allowance = Allowance::new(Plan::enterprise(5, 5), Window::Fixed);
        send(&mut allowance, after(0), 5);
        assert_eq!(allowance.admit(after(0)).unwrap_err().0, Period::Day);
        let mut last_minute = Allowance::new(Plan::enterprise(5, 5), Window::Fixed);
        send(&mut last_minute, after(86_399), 5);
        assert_eq!(
            last_minute.admit(after(86_399)).unwrap_err().1.reset,
            START + 86_400
        );
    }

    #[test]
    fn the_quota_with_the_fewest_requests_left_is_described() {
        let mut allowance = Allowance::new(Plan::enterprise(3, 3), Window::Fixed);
        send(&mut allowance, after(0), 1);
        assert_eq!(
            allowance.rate(after(0), RateHeaders::Tightest).reset,
            START + 60
        );
        let in_the_next_minute = allowance.rate(after(60), RateHeaders::Tightest);
        assert_eq!(in_the_next_minute.remaining, 2);
        assert_eq!(in_the_next_minute.reset, START + 86_400);
        assert_eq!(allowance.rate(after(60), RateHeaders::Minute).remaining, 3);
    }

    #[test]
    fn used_requests_count_against_the_limits_of_another_plan() {
        let mut allowance = free();
        send(&mut allowance, after(61), 3);
        allowance.set_plan(Plan::enterprise(4, 5));
        assert_eq!(left(&mut allowance, after(62)), [(3, 1), (3, 2)]);
    }

    #[test]
    fn a_quota_of_0_refuses_everything() {
        assert!(
            Allowance::new(Plan::enterprise(0, 5), Window::Sliding)
                .admit(after(0))
                .is_err()
        );
    }
}
