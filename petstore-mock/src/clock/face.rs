//! What a clock shows, as a pure function of what its source reads. The source is left to `source`.

use std::time::Duration;

/// The last second of the year 9999, after which HTTP has no date: no clock goes further.
pub(crate) const END: Duration = Duration::from_secs(253_402_300_799);

/// The fastest a clock can go: 11 days in a second.
const FASTEST: f64 = 1_000_000.0;

/// How a clock is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    /// When the source read this,
    pub(super) read: Duration,
    /// the clock showed this, counted from the Unix epoch,
    pub(super) shown: Duration,
    /// and from then on it goes this many times as fast as the source: 0 to [`FASTEST`].
    pub(super) pace: f64,
}

impl Face {
    /// Returns what the clock shows when the source reads `now`.
    pub(super) fn at(&self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.read);
        // Exactly, where nothing has to be reckoned.
        let passed = if self.pace == 1.0 { passed } else { times(passed, self.pace) };
        self.shown.saturating_add(passed).min(END)
    }

    /// Returns how much of the source's time passes while the clock goes on by `left`; nothing if it
    /// stands still.
    pub(super) fn source_time(&self, left: Duration) -> Option<Duration> {
        (self.pace > 0.0).then(|| {
            let exact = if self.pace == 1.0 { left } else { times(left, 1.0 / self.pace) };
            // Never too early by what was rounded off: that would be a loop without a wait.
            exact.saturating_add(Duration::from_micros(1))
        })
    }

    /// Returns the face set forward by this.
    pub(super) fn advanced(&self, now: Duration, by: Duration) -> Self {
        let shown = self.at(now).saturating_add(by).min(END);
        Self { read: now, shown, pace: self.pace }
    }

    /// Returns the face that goes on from here at another pace.
    pub(super) fn paced(&self, now: Duration, pace: f64) -> Self {
        Self { read: now, shown: self.at(now), pace: possible(pace) }
    }
}

/// Returns the nearest pace a clock can have; what is no number is none.
pub(super) fn possible(pace: f64) -> f64 {
    if pace.is_nan() { 0.0 } else { pace.clamp(0.0, FASTEST) }
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

    #[test]
    fn goes_on_from_where_it_is_at_another_pace() {
        let real = Face { read: s(100), shown: s(5_000), pace: 1.0 };
        let slow = real.paced(s(110), 0.5);
        assert_eq!(slow.at(s(114)), s(5_012));
        let fast = slow.paced(s(114), 60.0);
        assert_eq!(fast.at(s(115)), s(5_072));
        let frozen = fast.paced(s(115), 0.0);
        assert_eq!(frozen.at(s(1_000_000)), s(5_072));
        assert_eq!(frozen.paced(s(2_000_000), 1.0).at(s(2_000_001)), s(5_073));
        assert_eq!(frozen.advanced(s(116), s(8)).at(s(200)), s(5_080));
    }

    #[test]
    fn never_goes_back_nor_past_the_end() {
        let face = Face { read: s(100), shown: s(5_000), pace: 1.0 };
        assert_eq!(face.at(s(50)), s(5_000));
        assert_eq!(face.paced(s(100), -1.0).at(s(200)), s(5_000));
        assert_eq!(face.paced(s(100), f64::NAN).at(s(200)), s(5_000));
        assert_eq!(face.paced(s(100), f64::INFINITY).at(s(101)), s(1_005_000));
        assert_eq!(face.paced(s(100), f64::INFINITY).at(Duration::MAX), END);
        assert_eq!(face.advanced(s(100), Duration::MAX).at(s(200)), END);
    }

    #[test]
    fn knows_how_long_the_source_takes() {
        let with = |pace| Face { read: s(0), shown: s(0), pace }.source_time(s(60));
        let micro = Duration::from_micros(1);
        assert_eq!(with(0.0), None);
        assert_eq!(with(1.0), Some(s(60) + micro));
        assert_eq!(with(60.0), Some(s(1) + micro));
        assert_eq!(with(f64::MIN_POSITIVE), Some(Duration::MAX));
    }
}
