//! Instants on the local and the service's clock, and the difference between them.
//!
//! In the limiter, `now` is a [`LocalTime`], `service_now` the service's time, and `runtime_now` an
//! instant of the async runtime.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;

/// The clocks of a service's backends may differ by this much. A response outside the bounds then
/// widens them, and later responses narrow them again.
const MAX_SKEW: i64 = 10 * SECOND;

/// If `Date` contradicts the resets by more than this, the wall clock may be the right one.
const MAX_DATE_ERROR: i64 = 30 * SECOND;
/// How much a service may round waits and resets, in microseconds.
const MAX_ROUNDING: u64 = 2 * SECOND.unsigned_abs();

/// An instant on the service's clock: microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ServiceTime(pub(crate) i64);

/// An instant on a monotonic clock, in microseconds: the clock of this process, or of the shared
/// store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LocalTime(pub(crate) i64);

/// The source of the estimate of the service's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Source {
    /// The machine's wall clock: a guess.
    #[default]
    Wall,
    /// A wall clock according to which a reset was less than a minute away.
    ConfirmedWall,
    /// `X-RateLimit-Reset`, if the wall clock is certainly wrong.
    Reset,
    /// `X-RateLimit-Reset` and `Retry-After` of one 429.
    Throttled,
    /// `Date`.
    Date,
    /// The wall clock, because `Date` does not fit the resets and the wall clock does.
    WallNotDate,
}

/// The difference between the service's clock and the local one.
///
/// Each response bounds the difference: the service writes `Date` after the request was sent and
/// before the response arrives, and truncates it to seconds. The estimate intersects the bounds of
/// all responses.
///
/// For a service without `Date`, the estimate uses its resets. By the wall clock, such a reset may
/// be in the past, or more than a minute away. Then the limiter assumes a window of a minute that
/// began when the reset was first seen. The real window ends within that minute, and after it a
/// probe is sent.
///
/// Some services take `Date` from another clock than the resets. If a reset is minutes away by
/// `Date`, and less than a minute by the wall clock, the estimate goes by the wall clock.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct ServiceClock {
    /// The bounds of how far the service's clock is ahead of the local one, in microseconds.
    least: i64,
    most: i64,
    source: Source,
    /// How far the wall clock was ahead of the local one; `None` if it was wrong.
    wall: Option<i64>,
}

impl ServiceClock {
    pub(crate) fn guess(now: LocalTime, wall: ServiceTime) -> Self {
        let ahead = wall.0.saturating_sub(now.0);
        Self {
            least: ahead,
            most: ahead,
            source: Source::Wall,
            wall: Some(ahead),
        }
    }

    /// Records the `Date` of a response.
    pub(crate) fn observe_date(&mut self, sent: LocalTime, received: LocalTime, date: ServiceTime) {
        if self.source == Source::WallNotDate {
            return;
        }
        let least = date.0.saturating_sub(received.0);
        let most = date.0.saturating_add(SECOND).saturating_sub(sent.0);
        let (narrow_least, narrow_most) = (self.least.max(least), self.most.min(most));
        if self.source == Source::Date {
            if narrow_least <= narrow_most {
                (self.least, self.most) = (narrow_least, narrow_most);
                return;
            }
            if narrow_least.saturating_sub(narrow_most) <= MAX_SKEW {
                (self.least, self.most) = (self.least.min(least), self.most.max(most));
                return;
            }
        }
        // The first date, or the service's clock was changed.
        *self = Self {
            least,
            most,
            source: Source::Date,
            ..*self
        };
    }

    /// Records that a response has this `Date` and this reset, and the wait if it is a 429.
    pub(crate) fn observe_date_and_reset(
        &mut self,
        received: LocalTime,
        date: ServiceTime,
        reset: ServiceTime,
        wait: Option<Duration>,
    ) {
        let Some(wall) = self.wall else { return };
        let ahead = reset.0.saturating_sub(received.0);
        let by_date = ahead.saturating_sub(self.least);
        if self.source == Source::Date
            && !(-MAX_DATE_ERROR..=MINUTE + MAX_DATE_ERROR).contains(&by_date)
            && is_a_minute(ahead.saturating_sub(wall))
        {
            self.restart(wall, Source::WallNotDate);
        }
        // If the `Date` of a 429 plus its wait is its reset, all of them come from one clock.
        let Some(wait) = wait else { return };
        let by_wait = date.plus(wait).0.abs_diff(reset.0);
        if self.source == Source::WallNotDate && by_wait <= MAX_ROUNDING {
            self.wall = None;
            self.restart(date.0.saturating_sub(received.0), Source::Date);
        }
    }

    /// Records the reset of a response without `Date`, and the wait if it is a 429.
    pub(crate) fn observe_reset(
        &mut self,
        received: LocalTime,
        reset: ServiceTime,
        wait: Option<Duration>,
    ) {
        let ahead = reset.0.saturating_sub(received.0);
        match (self.source, wait) {
            (Source::Date | Source::WallNotDate, _) => {}
            // A longer wait may be for another quota than the reset.
            (_, Some(wait)) if !wait.is_zero() && is_a_minute(micros(wait)) => {
                self.restart(ahead.saturating_sub(micros(wait)), Source::Throttled);
            }
            (Source::ConfirmedWall, _) => {}
            (source, _) => match is_a_minute(ahead.saturating_sub(self.least)) {
                true if source == Source::Wall => self.source = Source::ConfirmedWall,
                true => {}
                false => self.restart(ahead.saturating_sub(MINUTE), Source::Reset),
            },
        }
    }

    fn restart(&mut self, ahead: i64, source: Source) {
        *self = Self {
            least: ahead,
            most: ahead,
            source,
            ..*self
        };
    }

    /// Returns whether the time to a reset is known, and not only assumed to be a minute.
    pub(crate) fn knows_quotas(&self) -> bool {
        self.source != Source::Reset
    }

    /// Returns the earliest possible time of the service's clock.
    pub(crate) fn earliest(&self, now: LocalTime) -> ServiceTime {
        ServiceTime(now.0.saturating_add(self.least))
    }

    /// Returns the local time at which the service's clock has certainly reached an instant.
    pub(crate) fn local(&self, at: ServiceTime) -> LocalTime {
        LocalTime(at.0.saturating_sub(self.least))
    }
}

impl ServiceTime {
    pub(crate) fn plus(self, wait: Duration) -> Self {
        self.moved(micros(wait))
    }

    /// Returns the time since an earlier instant, or zero.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        duration(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn moved(self, by: i64) -> Self {
        Self(self.0.saturating_add(by))
    }

    pub(crate) fn system(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + duration(self.0)
    }
}

impl From<SystemTime> for ServiceTime {
    fn from(at: SystemTime) -> Self {
        Self(micros(
            at.duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or(Duration::ZERO),
        ))
    }
}

impl LocalTime {
    pub(crate) fn plus(self, wait: Duration) -> Self {
        self.moved(micros(wait))
    }

    /// Returns the time since an earlier instant, or zero.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        duration(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn moved(self, by: i64) -> Self {
        Self(self.0.saturating_add(by))
    }
}

fn is_a_minute(length: i64) -> bool {
    (0..=MINUTE + SECOND).contains(&length)
}

pub(crate) fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * MINUTE;

    #[test]
    fn a_date_that_does_not_fit_the_resets_is_ignored() {
        // By the wall clock, the reset is in 40 s; by `Date`, it is `later` seconds after that.
        let observe = |later: i64, wall_error: i64, wait: Option<u64>| {
            let now = LocalTime(0);
            let mut clock = ServiceClock::guess(now, ServiceTime(HOUR + wall_error));
            let (date, reset) = (ServiceTime(HOUR - later), ServiceTime(HOUR + 40 * SECOND));
            clock.observe_date(now, now, date);
            clock.observe_date_and_reset(now, date, reset, None);
            clock.observe_date(now, now, date);
            let wait = wait.map(Duration::from_secs);
            clock.observe_date_and_reset(now, date, reset, wait);
            (clock.local(reset).0) / SECOND
        };
        for later in [
            -HOUR,
            -600 * SECOND,
            -71 * SECOND,
            51 * SECOND,
            600 * SECOND,
            12 * HOUR,
        ] {
            assert_eq!(observe(later, 0, None), 40, "{later}");
        }
        for later in [-70 * SECOND, 50 * SECOND] {
            assert_eq!(observe(later, 0, None), 40 + later / SECOND, "{later}");
        }
        for wall_error in [-HOUR, 41 * SECOND, HOUR] {
            let found = observe(600 * SECOND, wall_error, None);
            assert_eq!(found, 640, "the wall clock does not fit either");
        }
        assert_eq!(observe(600 * SECOND, 0, Some(40)), 40);
        assert_eq!(observe(600 * SECOND, 0, Some(640)), 640, "a day's quota");
    }

    #[test]
    fn narrows_with_each_date_and_always_holds_the_truth() {
        // The service is 1,000.3 s ahead; a round trip takes 80 ms, 30 ms of it on the way there.
        let ahead = 1_000_300_000;
        let mut clock = ServiceClock::guess(LocalTime(0), ServiceTime(5));
        for step in 0..200 {
            let sent = step * 730_000;
            let written = sent + 30_000 + ahead;
            let date = ServiceTime(written / SECOND * SECOND);
            clock.observe_date(LocalTime(sent), LocalTime(sent + 80_000), date);
            assert!(clock.least <= ahead && ahead <= clock.most, "{clock:?}");
        }
        assert!(clock.most - clock.least < 150_000, "{clock:?}");
    }

    #[test]
    fn starts_again_where_the_services_clock_was_set() {
        let mut clock = ServiceClock::guess(LocalTime(0), ServiceTime(0));
        clock.observe_date(LocalTime(0), LocalTime(10), ServiceTime(100 * SECOND));
        clock.observe_date(LocalTime(20), LocalTime(30), ServiceTime(5_000 * SECOND));
        assert_eq!(clock.earliest(LocalTime(30)), ServiceTime(5_000 * SECOND));
    }

    #[test]
    fn the_later_of_two_backends_clocks_counts() {
        let mut clock = ServiceClock::guess(LocalTime(0), ServiceTime(0));
        for step in 0..20 {
            let now = LocalTime(step * 100_000);
            let ahead = if step % 2 == 0 {
                100 * SECOND
            } else {
                104 * SECOND
            };
            let date = ServiceTime((now.0 + ahead) / SECOND * SECOND);
            clock.observe_date(now, now, date);
            assert!(clock.least <= 100 * SECOND, "{step}: {clock:?}");
        }
    }

    #[test]
    fn dates_that_disagree_widen_the_bounds_up_to_ten_seconds() {
        for (later, least, most) in [
            (SECOND, SECOND, SECOND),
            (11 * SECOND, 0, 12 * SECOND),
            (11 * SECOND + 1, 11 * SECOND + 1, 12 * SECOND + 1),
        ] {
            let mut clock = ServiceClock::guess(LocalTime(0), ServiceTime(HOUR));
            for date in [0, later] {
                clock.observe_date(LocalTime(0), LocalTime(0), ServiceTime(date));
            }
            assert_eq!((clock.least, clock.most), (least, most), "{later}");
        }
    }

    /// Returns the estimated time to a reset that is `ahead` of the wall clock.
    fn left(ahead: i64) -> i64 {
        let mut clock = ServiceClock::guess(LocalTime(0), ServiceTime(HOUR));
        let reset = ServiceTime(HOUR + ahead);
        clock.observe_reset(LocalTime(0), reset, None);
        clock.local(reset).0
    }

    #[test]
    fn a_reset_that_no_clock_explains_is_a_minute_away() {
        for ahead in [HOUR, MINUTE + SECOND + 1, -1, -HOUR] {
            assert_eq!(left(ahead), MINUTE, "{ahead}");
        }
        for ahead in [0, 40 * SECOND, MINUTE + SECOND] {
            assert_eq!(left(ahead), ahead, "the wall clock may be right");
        }
        // A wall clock that was right once is believed.
        for (resets, expected) in [
            (&[HOUR + SECOND, 2 * HOUR][..], HOUR),
            (&[2 * HOUR, 2 * HOUR, 3 * HOUR], MINUTE),
        ] {
            let mut clock = ServiceClock::guess(LocalTime(0), ServiceTime(HOUR));
            let observe = |reset: &i64| {
                clock.observe_reset(LocalTime(0), ServiceTime(*reset), None);
                clock.local(ServiceTime(*reset)).0
            };
            assert_eq!(
                resets.iter().map(observe).last(),
                Some(expected),
                "{resets:?}"
            );
        }
    }

    #[test]
    fn without_dates_a_429_with_reset_and_wait_tells_the_time() {
        let mut clock = ServiceClock::guess(LocalTime(0), ServiceTime(0));
        let wait = Some(Duration::from_secs(30));
        clock.observe_reset(LocalTime(SECOND), ServiceTime(HOUR), wait);
        assert_eq!(clock.local(ServiceTime(HOUR)), LocalTime(31 * SECOND));
        // A wait of zero does not mean that the window has ended.
        clock.observe_reset(LocalTime(SECOND), ServiceTime(HOUR), Some(Duration::ZERO));
        assert_eq!(clock.local(ServiceTime(HOUR)), LocalTime(31 * SECOND));
        let mut clock = ServiceClock::guess(LocalTime(0), ServiceTime(HOUR));
        let (reset, longer) = (
            ServiceTime(HOUR + 30 * SECOND),
            Some(Duration::from_secs(3_600)),
        );
        clock.observe_reset(LocalTime(0), reset, longer);
        assert_eq!(
            clock.local(reset),
            LocalTime(30 * SECOND),
            "the wait is for another quota"
        );
    }
}
