//! The setting of a clock: what it shows when its source shows a time.

use std::time::Duration;

use super::instant::END;

/// The maximum speed: 11 days in a second.
const MAX_PACE: f64 = 1_000_000.0;

/// The setting of a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockState {
    /// The source's time when the clock was set.
    read: Duration,
    /// The clock's time then, since the Unix epoch.
    shown: Duration,
    /// The clock's speed relative to the source: 0 to [`MAX_PACE`].
    pace: f64,
}

impl ClockState {
    /// Returns the setting of a clock that shows `shown` when the source shows `read`.
    pub(super) fn new(read: Duration, shown: Duration, pace: f64) -> Self {
        let pace = possible(pace);
        Self { read, shown, pace }
    }

    /// Returns the clock's time when the source shows `now`.
    pub(super) fn at(&self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.read);
        // At the source's own speed, this avoids rounding.
        let passed = if self.pace == 1.0 {
            passed
        } else {
            times(passed, self.pace)
        };
        self.shown.saturating_add(passed).min(END)
    }

    /// Returns how much time of the source passes while the clock advances by `left`; `None` if the
    /// clock is frozen.
    pub(super) fn source_time(&self, left: Duration) -> Option<Duration> {
        (self.pace > 0.0).then(|| {
            let exact = if self.pace == 1.0 {
                left
            } else {
                times(left, 1.0 / self.pace)
            };
            // Rounded down, the wait would end too early again and again.
            exact.saturating_add(Duration::from_micros(1))
        })
    }

    /// Moves the clock forward when the source shows `now`.
    pub(super) fn advance(&mut self, now: Duration, by: Duration) {
        let shown = self.at(now).saturating_add(by).min(END);
        (self.shown, self.read) = (shown, now);
    }

    /// Moves the clock forward to `at` when the source shows `now`, unless it is already past that.
    pub(super) fn advance_to(&mut self, now: Duration, at: Duration) {
        (self.shown, self.read) = (self.at(now).max(at), now);
    }

    /// Changes the speed when the source shows `now`. A speed outside the range becomes the nearest
    /// possible one, and NaN becomes 0.
    pub(super) fn scale(&mut self, now: Duration, pace: f64) {
        (self.shown, self.read) = (self.at(now), now);
        self.pace = possible(pace);
    }

    pub(super) const fn pace(&self) -> f64 {
        self.pace
    }
}

/// Clamps a speed to the possible range; 0 for NaN.
fn possible(pace: f64) -> f64 {
    if pace.is_nan() {
        0.0
    } else {
        pace.clamp(0.0, MAX_PACE)
    }
}

fn times(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Returns the setting with another speed from `now` on.
    fn paced(mut state: ClockState, now: Duration, pace: f64) -> ClockState {
        state.scale(now, pace);
        state
    }

    #[test]
    fn goes_on_from_where_it_is_at_another_pace() {
        let real = ClockState {
            read: s(100),
            shown: s(5_000),
            pace: 1.0,
        };
        let slow = paced(real, s(110), 0.5);
        assert_eq!(slow.at(s(114)), s(5_012));
        let fast = paced(slow, s(114), 60.0);
        assert_eq!(fast.at(s(115)), s(5_072));
        let frozen = paced(fast, s(115), 0.0);
        assert_eq!(frozen.at(s(1_000_000)), s(5_072));
        assert_eq!(paced(frozen, s(2_000_000), 1.0).at(s(2_000_001)), s(5_073));
    }

    #[test]
    fn never_goes_back_nor_past_the_end() {
        let state = ClockState {
            read: s(100),
            shown: s(5_000),
            pace: 1.0,
        };
        assert_eq!(state.at(s(50)), s(5_000));
        assert_eq!(paced(state, s(100), -1.0).at(s(200)), s(5_000));
        assert_eq!(paced(state, s(100), f64::NAN).at(s(200)), s(5_000));
        assert_eq!(paced(state, s(100), f64::INFINITY).at(s(101)), s(1_005_000));
        assert_eq!(paced(state, s(100), f64::INFINITY).at(Duration::MAX), END);
    }

    #[test]
    fn knows_how_long_the_source_takes() {
        let with = |pace| {
            ClockState {
                read: s(0),
                shown: s(0),
                pace,
            }
            .source_time(s(60))
        };
        let micro = Duration::from_micros(1);
        assert_eq!(with(0.0), None);
        assert_eq!(with(1.0), Some(s(60) + micro));
        assert_eq!(with(60.0), Some(s(1) + micro));
        assert_eq!(with(f64::MIN_POSITIVE), Some(Duration::MAX));
    }
}
