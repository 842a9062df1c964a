//! A key's two quotas, the minute's and the day's, which hold at once. How one counts is left to
//! `window`.

use std::time::Duration;

use super::{Quota, Rate, Used, Window};

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
