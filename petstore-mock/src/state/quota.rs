//! The quotas of a key (specification, section 8). Pure functions of `now`.

use std::{collections::VecDeque, time::Duration};

use strum::{Display, EnumString, VariantNames};

use crate::exchange::Rate;

/// The quota that the `X-RateLimit-*` headers describe.
///
/// The specification does not show this. Assumption: [`RateHeaders::Tightest`] by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum RateHeaders {
    /// The quota with the fewest requests left; the quota per minute if both are equal.
    #[default]
    Tightest,
    /// Always the quota per minute.
    Minute,
    /// Always the quota per day.
    Day,
}

/// The kind of a quota's window.
///
/// The specification does not show this. Assumption: [`Window::Fixed`] by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum Window {
    /// Fixed windows, aligned to the clock's minute and to the UTC day. The quota resets when a new
    /// window begins.
    #[default]
    Fixed,
    /// Sliding windows: the last 60 and 86,400 seconds.
    ///
    /// Requests are counted per second. A request leaves the window at the start of the second 60
    /// (or 86,400) seconds after its own. `X-RateLimit-Reset` is when the oldest request leaves, or
    /// the end of a window that starts now if none is counted.
    Sliding,
}

/// The period of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display)]
#[strum(serialize_all = "lowercase")]
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
}

/// The exhausted quota for which a request is refused. If both are, the one that resets later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted {
    pub(crate) period: Period,
    pub(crate) rate: Rate,
}

/// The quotas of a key, per minute and per day.
#[derive(Clone, Debug)]
pub(crate) struct Allowance([Quota; 2]);

impl Allowance {
    pub(crate) fn new(per_minute: u32, per_day: u32, window: Window) -> Self {
        let minute = Quota::new(per_minute, Period::Minute, window);
        Self([minute, Quota::new(per_day, Period::Day, window)])
    }

    /// Returns the counted requests and the rate of each quota at `now`.
    pub(crate) fn usage(&mut self, now: Duration) -> [(u64, Rate); 2] {
        self.0.each_mut().map(|quota| {
            let rate = quota.rate(now);
            (quota.count, rate)
        })
    }

    /// Sets the limits. Counted requests stay counted.
    pub(crate) fn set_limits(&mut self, per_minute: u32, per_day: u32) {
        [self.0[0].limit, self.0[1].limit] = [per_minute, per_day];
    }

    /// Returns the counted requests of each quota, for a snapshot.
    pub(crate) fn used(&self) -> [Used; 2] {
        self.0.each_ref().map(|quota| quota.used.clone())
    }

    /// Sets the counted requests of each quota. Returns false if they are invalid for the windows.
    pub(crate) fn set_used(&mut self, used: [Used; 2]) -> bool {
        self.0
            .iter_mut()
            .zip(used)
            .all(|(quota, used)| quota.set_used(used))
    }

    /// Counts a request in both quotas, or refuses it without counting.
    pub(crate) fn admit(&mut self, now: Duration) -> Result<(), Exhausted> {
        let rates = self
            .0
            .each_mut()
            .map(|quota| (quota.period, quota.rate(now)));
        let exhausted = rates.into_iter().filter(|(_, rate)| rate.remaining == 0);
        if let Some((period, rate)) = exhausted.max_by_key(|(_, rate)| rate.reset) {
            return Err(Exhausted { period, rate });
        }
        self.0.iter_mut().for_each(|quota| quota.count(now));
        Ok(())
    }

    /// Returns the values of the headers at `now`.
    pub(crate) fn rate(&mut self, now: Duration, headers: RateHeaders) -> Rate {
        let [minute, day] = self.0.each_mut().map(|quota| quota.rate(now));
        match headers {
            RateHeaders::Day => day,
            RateHeaders::Tightest if day.remaining < minute.remaining => day,
            RateHeaders::Tightest | RateHeaders::Minute => minute,
        }
    }
}

/// A quota and its counted requests.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    limit: u32,
    period: Period,
    window: Window,
    used: Used,
    /// The sum of them.
    count: u64,
}

/// The counted requests of a quota: seconds, ascending, with the number of requests. In a fixed
/// window, this is the second in which it began. Each entry leaves the window a period later.
pub(crate) type Used = VecDeque<(u64, u64)>;

impl Quota {
    pub(crate) fn new(limit: u32, period: Period, window: Window) -> Self {
        Self {
            limit,
            period,
            window,
            used: Used::new(),
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

    /// Returns what is left at `now`.
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
            // `>`: a clock that goes back must not unsort the log.
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

    fn set_used(&mut self, used: Used) -> bool {
        let is_possible = |at: u64| self.counted_at(Duration::from_secs(at)) == at;
        let fits = used.iter().all(|(at, _)| is_possible(*at))
            && used
                .iter()
                .zip(used.iter().skip(1))
                .all(|(one, next)| one.0 < next.0)
            && used.len() as u64 <= self.period.seconds();
        self.count = used
            .iter()
            .fold(0, |sum: u64, (_, here)| sum.saturating_add(*here));
        self.used = used;
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Midnight UTC: 2025-01-01T00:00:00Z.
    const START: u64 = 1_735_689_600;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(START + seconds)
    }

    fn free() -> Allowance {
        Allowance::new(60, 1_000, Window::Fixed)
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
        let mut allowance = Allowance::new(5, 5, Window::Fixed);
        send(&mut allowance, at(0), 5);
        assert_eq!(allowance.admit(at(0)).unwrap_err().period, Period::Day);
        let mut last_minute = Allowance::new(5, 5, Window::Fixed);
        send(&mut last_minute, at(86_399), 5);
        assert_eq!(
            last_minute.admit(at(86_399)).unwrap_err().rate.reset,
            START + 86_400
        );
    }

    #[test]
    fn describes_the_quota_with_the_fewest_requests_left_and_the_minute_in_a_tie() {
        let mut allowance = Allowance::new(3, 3, Window::Fixed);
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
        let used = [Used::from([(START + 60, 3)]), Used::from([(START, 3)])];
        assert_eq!(allowance.used(), used);
        let mut restored = free();
        assert!(restored.set_used(used));
        restored.set_limits(4, 5);
        let usage = restored
            .usage(at(62))
            .map(|(count, rate)| (count, rate.remaining));
        assert_eq!(usage, [(3, 1), (3, 2)]);
        assert!(!restored.set_used([Used::from([(START + 1, 3)]), Used::new()]));
    }

    #[test]
    fn a_quota_of_0_refuses_everything() {
        assert!(Allowance::new(0, 5, Window::Sliding).admit(at(0)).is_err());
    }
}

#[cfg(test)]
mod window_tests {
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
    fn a_fixed_day_ends_at_midnight_utc() {
        let mut quota = Quota::new(1_000, Period::Day, Window::Fixed);
        assert_eq!(used(&mut quota, at(5_000), 1).reset, START + 86_400);
    }

    #[test]
    fn a_sliding_window_releases_each_request_separately() {
        let mut quota = Quota::new(3, Period::Minute, Window::Sliding);
        used(&mut quota, at(0), 1);
        let rate = used(&mut quota, at(10_500), 2);
        assert_eq!((rate.remaining, rate.reset), (0, START + 60));
        let one_back = quota.rate(at(60_000));
        assert_eq!((one_back.remaining, one_back.reset), (1, START + 70));
        assert_eq!(quota.rate(at(69_999)).remaining, 1);
        assert_eq!(quota.rate(at(70_000)).remaining, 3);
    }

    #[test]
    fn an_empty_sliding_window_resets_in_the_future() {
        let mut quota = Quota::new(3, Period::Minute, Window::Sliding);
        assert_eq!(quota.rate(at(999)).reset, START + 60);
    }

    #[test]
    fn a_sliding_log_holds_one_entry_a_second() {
        let mut quota = Quota::new(u32::MAX, Period::Minute, Window::Sliding);
        for tenth in 0..10_000 {
            quota.count(at(tenth * 100));
        }
        assert_eq!((quota.used.len(), quota.count), (60, 600));
    }

    #[test]
    fn what_no_window_can_hold_is_not_taken_over() {
        for (window, seconds, is_possible) in [
            (Window::Fixed, vec![0, 60], true),
            (Window::Fixed, vec![1], false),
            (Window::Fixed, vec![60, 60], false),
            (Window::Fixed, vec![60, 0], false),
            (Window::Sliding, vec![1, 2], true),
            (Window::Sliding, vec![2, 2], false),
            (Window::Sliding, (0..60).collect(), true),
            (Window::Sliding, (0..61).collect(), false),
        ] {
            let used = seconds.iter().map(|second| (START + second, 1)).collect();
            let mut quota = Quota::new(5, Period::Minute, window);
            assert_eq!(quota.set_used(used), is_possible, "{window:?} {seconds:?}");
        }
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

    #[test]
    fn survives_the_end_of_time() {
        for window in [Window::Fixed, Window::Sliding] {
            let mut quota = Quota::new(1, Period::Minute, window);
            let rate = used(&mut quota, Duration::from_secs(253_402_300_799), 5);
            assert_eq!(rate.remaining, 0, "{window:?}");
            quota.count(Duration::MAX);
            quota.rate(Duration::MAX);
        }
    }

    #[test]
    fn a_clock_that_goes_back_leaves_the_log_sorted() {
        let mut quota = Quota::new(60, Period::Minute, Window::Sliding);
        quota.count(Duration::from_secs(70));
        quota.count(Duration::from_secs(65));
        assert_eq!(quota.used, Used::from([(70, 2)]));
        assert_eq!(quota.rate(Duration::from_secs(71)).remaining, 58);
    }
}
