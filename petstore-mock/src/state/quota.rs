//! One quota: a limit, a window and the requests counted in it (specification, section 8). Pure
//! functions of `now`.

use std::{collections::VecDeque, time::Duration};

use strum::EnumString;

use crate::exchange::Rate;

/// The kind of a quota's window.
///
/// The specification does not show this. Assumption: [`Window::Fixed`] by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EnumString)]
#[cfg_attr(test, derive(strum::VariantNames))]
#[strum(serialize_all = "lowercase")]
#[strum(parse_err_ty = ParseWindowError, parse_err_fn = unknown_window)]
#[non_exhaustive]
pub enum Window {
    /// Fixed windows, aligned to the clock's minute and hour, and to the UTC day. The quota resets when a new
    /// window begins.
    #[default]
    Fixed,
    /// Sliding windows: the last 60, 3,600 and 86,400 seconds.
    ///
    /// Requests are counted per second. A request leaves the window at the start of the second 60
    /// (3,600, 86,400) seconds after its own. `X-RateLimit-Reset` is when the oldest request leaves, or
    /// the end of a window that starts now if none is counted.
    Sliding,
}

/// The error for a text that is not the name of a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a window is fixed or sliding")]
pub struct ParseWindowError;

fn unknown_window(_: &str) -> ParseWindowError {
    ParseWindowError
}

/// The period of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Period {
    Minute,
    Hour,
    Day,
}

impl Period {
    const fn seconds(self) -> u64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        }
    }

    /// Returns the period with its article, as in "60 requests a minute".
    pub(crate) const fn with_article(self) -> &'static str {
        match self {
            Self::Minute => "a minute",
            Self::Hour => "an hour",
            Self::Day => "a day",
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
    /// The sum of the counted requests.
    count: u64,
}

/// The counted requests of a quota: ascending seconds, each with a number of requests. In a fixed
/// window, the second is that in which the window began. Each entry leaves the window a period
/// later.
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

    pub(super) fn period(&self) -> Period {
        self.period
    }

    pub(super) fn used(&self) -> &Used {
        &self.used
    }

    /// Returns the number of counted requests.
    pub(super) fn counted(&self) -> u64 {
        self.count
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
    pub(super) fn count(&mut self, now: Duration) {
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

    /// Takes over the counted requests of a quota with another limit.
    pub(super) fn take_over(&mut self, old: &Self) {
        self.used.clone_from(&old.used);
        self.count = old.count;
    }

    /// Sets the counted requests. Returns false if they are impossible for the kind of window.
    pub(super) fn set_used(&mut self, used: Used) -> bool {
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
    use strum::VariantNames as _;

    use super::*;

    #[test]
    fn the_error_of_an_unknown_name_lists_all() {
        let problem = "other".parse::<Window>().unwrap_err().to_string();
        for name in Window::VARIANTS {
            assert!(problem.contains(name), "{problem}");
        }
    }

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
