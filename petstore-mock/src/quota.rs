//! The quotas of the specification's section 8: what a key has used, has left, and when it gets more. Pure
//! functions of `now`.

use std::{collections::VecDeque, time::Duration};

use serde::{Deserialize, Serialize};

const MINUTE: u64 = 60;
const DAY: u64 = 86_400;

/// Which of a key's two quotas the `X-RateLimit-*` headers describe.
///
/// The specification does not show it, so this is an assumption: [`RateHeaders::Tightest`] unless
/// set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RateHeaders {
    /// The quota with the fewest requests left; the minute's where both have as many.
    #[default]
    Tightest,
    /// Always the minute's.
    Minute,
    /// Always the day's.
    Day,
}

/// One of the two quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Period {
    Minute,
    Day,
}

/// Why a request was refused: a quota is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted {
    /// The quota that bit; the one that resets later, if both did.
    pub(crate) period: Period,
    /// How many requests it allows.
    pub(crate) limit: u32,
    /// When it allows more, in seconds since the Unix epoch.
    pub(crate) until: u64,
}

/// What a key may still send.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    minute: Quota,
    day: Quota,
}

impl Allowance {
    pub(crate) fn new(per_minute: u32, per_day: u32, window: Window) -> Self {
        Self {
            minute: Quota::new(per_minute, MINUTE, window),
            day: Quota::new(per_day, DAY, window),
        }
    }

    /// Returns what is used of the minute's quota and of the day's at `now`.
    pub(crate) fn usage(&mut self, now: Duration) -> [(u32, Rate); 2] {
        [&mut self.minute, &mut self.day].map(|quota| (quota.used_by(now), quota.rate(now)))
    }

    /// Sets how many requests are allowed; those counted stay counted.
    pub(crate) fn set_limits(&mut self, per_minute: u32, per_day: u32) {
        self.minute.set_limit(per_minute);
        self.day.set_limit(per_day);
    }

    /// Returns what is used of the minute's quota and of the day's, for a snapshot.
    pub(crate) fn used(&self) -> [Used; 2] {
        [&self.minute, &self.day].map(|quota| quota.used().clone())
    }

    /// Returns the allowance with this used of it; nothing if it counts in another kind of window.
    pub(crate) fn with_used(&self, [minute, day]: [Used; 2]) -> Option<Self> {
        Some(Self { minute: self.minute.with_used(minute)?, day: self.day.with_used(day)? })
    }

    /// Counts a request in both quotas, or refuses it and counts nothing.
    pub(crate) fn admit(&mut self, now: Duration) -> Result<(), Exhausted> {
        let exhausted = |period, rate: Rate| {
            (rate.remaining == 0).then_some(Exhausted {
                period,
                limit: rate.limit,
                until: rate.reset,
            })
        };
        let minute = exhausted(Period::Minute, self.minute.rate(now));
        let day = exhausted(Period::Day, self.day.rate(now));
        match (minute, day) {
            (None, None) => {
                self.minute.count(now);
                self.day.count(now);
                Ok(())
            }
            (Some(one), None) | (None, Some(one)) => Err(one),
            (Some(minute), Some(day)) if minute.until > day.until => Err(minute),
            (Some(_), Some(day)) => Err(day),
        }
    }

    /// Returns what the headers are to say at `now`.
    pub(crate) fn rate(&mut self, now: Duration, headers: RateHeaders) -> Rate {
        let (minute, day) = (self.minute.rate(now), self.day.rate(now));
        match headers {
            RateHeaders::Day => day,
            RateHeaders::Tightest if day.remaining < minute.remaining => day,
            RateHeaders::Tightest | RateHeaders::Minute => minute,
        }
    }
}

/// What kind of window a quota counts in.
///
/// The specification does not show it, so this is an assumption: [`Window::Fixed`] unless set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Window {
    /// Windows that follow one another, aligned to the clock's minute and to the UTC day; all
    /// requests come back at once when a new one begins.
    #[default]
    Fixed,
    /// The last 60 seconds and the last 86,400 seconds; each request comes back on its own.
    ///
    /// Requests are counted by the second in which they came: one leaves the window at the start of
    /// the second that lies 60 (or 86,400) after its own. `X-RateLimit-Reset` is when the oldest of
    /// them leaves; where none is counted, the end of a window that began now.
    Sliding,
}

/// What the `X-RateLimit-*` headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// In seconds since the Unix epoch; always later than the `now` it was asked for.
    pub(crate) reset: u64,
}

/// A quota and what is used of it.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    limit: u32,
    /// The length of the window, in seconds.
    period: u64,
    used: Used,
}

/// What is used of a quota, as it is kept in a snapshot too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Used {
    Fixed {
        /// The number of the window since the epoch.
        window: u64,
        count: u32,
    },
    Sliding {
        /// The seconds in which requests came and how many: never more entries than `period`.
        log: VecDeque<(u64, u32)>,
        count: u32,
    },
}

impl Quota {
    pub(crate) fn new(limit: u32, period: u64, window: Window) -> Self {
        let used = match window {
            Window::Fixed => Used::Fixed { window: 0, count: 0 },
            Window::Sliding => Used::Sliding { log: VecDeque::new(), count: 0 },
        };
        Self { limit, period, used }
    }

    /// Returns what is left at `now`.
    pub(crate) fn rate(&mut self, now: Duration) -> Rate {
        self.forget(now);
        let (count, reset) = match &self.used {
            Used::Fixed { window, count } => {
                (*count, window.saturating_add(1).saturating_mul(self.period))
            }
            Used::Sliding { log, count } => {
                let oldest = log.front().map_or(now.as_secs(), |(second, _)| *second);
                (*count, oldest.saturating_add(self.period))
            }
        };
        Rate { limit: self.limit, remaining: self.limit.saturating_sub(count), reset }
    }

    /// Returns how many requests count at `now`: more than the limit where that was lowered since.
    pub(crate) fn used_by(&mut self, now: Duration) -> u32 {
        self.forget(now);
        match &self.used {
            Used::Fixed { count, .. } | Used::Sliding { count, .. } => *count,
        }
    }

    /// Sets how many requests it allows; what is used stays used.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Returns what is used.
    pub(crate) fn used(&self) -> &Used {
        &self.used
    }

    /// Returns the quota with this used of it; nothing if a quota like this does not count like that.
    pub(crate) fn with_used(&self, mut used: Used) -> Option<Self> {
        let fits = match (&self.used, &mut used) {
            (Used::Fixed { .. }, Used::Fixed { .. }) => true,
            (Used::Sliding { .. }, Used::Sliding { log, count }) => {
                *count = log.iter().fold(0, |sum: u32, (_, here)| sum.saturating_add(*here));
                let ascends = log.iter().zip(log.iter().skip(1)).all(|(one, next)| one.0 < next.0);
                ascends && u64::try_from(log.len()).is_ok_and(|length| length <= self.period)
            }
            _ => false,
        };
        fits.then(|| Self { used, ..self.clone() })
    }

    /// Counts one request that was let in at `now`.
    pub(crate) fn count(&mut self, now: Duration) {
        self.forget(now);
        match &mut self.used {
            Used::Fixed { count, .. } => *count = count.saturating_add(1),
            Used::Sliding { log, count } => {
                *count = count.saturating_add(1);
                match log.back_mut() {
                    // `>`: a clock that went back must not put the log out of order.
                    Some((second, here)) if *second >= now.as_secs() => {
                        *here = here.saturating_add(1);
                    }
                    _ => log.push_back((now.as_secs(), 1)),
                }
            }
        }
    }

    /// Drops what has left the window by `now`. A clock that went back changes nothing.
    fn forget(&mut self, now: Duration) {
        let second = now.as_secs();
        match &mut self.used {
            Used::Fixed { window, count } => {
                let current = second / self.period;
                if current > *window {
                    (*window, *count) = (current, 0);
                }
            }
            Used::Sliding { log, count } => {
                while let Some(&(oldest, here)) = log.front() {
                    if oldest.saturating_add(self.period) > second {
                        break;
                    }
                    *count = count.saturating_sub(here);
                    log.pop_front();
                }
            }
        }
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
        assert_eq!((refusal.period, refusal.limit), (Period::Minute, 60));
        assert_eq!(refusal.until, START + 60);
        assert_eq!(allowance.admit(at(60)), Ok(()));
    }

    #[test]
    fn refuses_the_1001st_request_of_a_day_on_a_free_key() {
        let mut allowance = free();
        for minute in 0..20 {
            send(&mut allowance, at(minute * 60), 50);
        }
        let refusal = allowance.admit(at(1_200)).unwrap_err();
        assert_eq!((refusal.period, refusal.until), (Period::Day, START + 86_400));
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
        assert_eq!(last_minute.admit(at(86_399)).unwrap_err().until, START + 86_400);
    }

    #[test]
    fn describes_the_quota_with_the_fewest_requests_left_and_the_minute_in_a_tie() {
        let mut allowance = Allowance::new(3, 3, Window::Fixed);
        send(&mut allowance, at(0), 1);
        assert_eq!(allowance.rate(at(0), RateHeaders::Tightest).reset, START + 60);
        let in_the_next_minute = allowance.rate(at(60), RateHeaders::Tightest);
        assert_eq!(in_the_next_minute.remaining, 2);
        assert_eq!(in_the_next_minute.reset, START + 86_400);
        assert_eq!(allowance.rate(at(60), RateHeaders::Minute).remaining, 3);
    }

    #[test]
    fn a_quota_of_nothing_refuses_everything() {
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
        let mut quota = Quota::new(60, 60, Window::Fixed);
        let rate = used(&mut quota, at(12_345), 60);
        assert_eq!((rate.remaining, rate.reset), (0, START + 60));
        assert_eq!(quota.rate(at(59_999)).remaining, 0);
        let next = quota.rate(at(60_000));
        assert_eq!((next.remaining, next.reset), (60, START + 120));
    }

    #[test]
    fn a_fixed_day_ends_at_midnight_utc() {
        let mut quota = Quota::new(1_000, 86_400, Window::Fixed);
        assert_eq!(used(&mut quota, at(5_000), 1).reset, START + 86_400);
    }

    #[test]
    fn a_sliding_window_gives_each_request_back_on_its_own() {
        let mut quota = Quota::new(3, 60, Window::Sliding);
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
        let mut quota = Quota::new(3, 60, Window::Sliding);
        assert_eq!(quota.rate(at(999)).reset, START + 60);
    }

    #[test]
    fn a_sliding_log_holds_one_entry_a_second() {
        let mut quota = Quota::new(u32::MAX, 60, Window::Sliding);
        for tenth in 0..10_000 {
            quota.count(at(tenth * 100));
        }
        let Used::Sliding { log, count } = &quota.used else {
            panic!("a sliding quota");
        };
        assert_eq!((log.len(), *count), (60, 600));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_back() {
        for window in [Window::Fixed, Window::Sliding] {
            let mut quota = Quota::new(3, 60, window);
            used(&mut quota, at(120_000), 2);
            let rate = used(&mut quota, at(0), 1);
            assert_eq!(rate.remaining, 0, "{window:?}");
            assert!(rate.reset > START + 120, "{window:?}");
        }
    }

    #[test]
    fn survives_the_end_of_time() {
        for window in [Window::Fixed, Window::Sliding] {
            let mut quota = Quota::new(1, 60, window);
            let rate = used(&mut quota, Duration::from_secs(253_402_300_799), 5);
            assert_eq!(rate.remaining, 0, "{window:?}");
            quota.count(Duration::MAX);
            quota.rate(Duration::MAX);
        }
    }
}
