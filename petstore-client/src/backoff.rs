//! The back-off schedule. Only this module uses the `backoff` crate.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;

/// Exponential back-off with full jitter: each delay is random, between zero and an interval that
/// doubles.
///
/// ```
/// use std::time::Duration;
/// use petstore_client::retry::Backoff;
///
/// let quick = Backoff::new().initial(Duration::from_millis(50)).max(Duration::from_secs(2));
/// # let _ = quick;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub struct Backoff {
    initial: Duration,
    max: Duration,
}

impl Backoff {
    /// Creates the default: an interval of 200 ms that doubles up to 10 s.
    pub fn new() -> Self {
        Self {
            initial: Duration::from_millis(200),
            max: Duration::from_secs(10),
        }
    }

    /// Sets the first interval.
    pub fn initial(mut self, interval: Duration) -> Self {
        self.initial = interval;
        self
    }

    /// Sets the longest interval.
    pub fn max(mut self, interval: Duration) -> Self {
        self.max = interval;
        self
    }

    /// Returns the schedule of a call.
    pub(crate) fn schedule(self) -> Schedule {
        // A factor of 1.0 spreads a delay over 0 to twice the interval, so half the interval gives
        // full jitter.
        let initial = self.initial.min(self.max) / 2;
        Schedule(ExponentialBackoff {
            current_interval: initial,
            initial_interval: initial,
            randomization_factor: 1.0,
            multiplier: 2.0,
            max_interval: self.max / 2,
            max_elapsed_time: None,
            ..ExponentialBackoff::default()
        })
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// The delays of one call.
#[derive(Debug)]
pub(crate) struct Schedule(ExponentialBackoff);

impl Schedule {
    pub(crate) fn next(&mut self) -> Duration {
        // `None` requires `max_elapsed_time`, which is not set.
        self.0.next_backoff().unwrap_or(self.0.max_interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_random_up_to_an_interval_that_doubles() {
        let seconds = Duration::from_secs;
        let backoff = Backoff::new().initial(seconds(1)).max(seconds(4));
        let mut longest = [Duration::ZERO; 4];
        for _ in 0..1_000 {
            let mut schedule = backoff.schedule();
            longest
                .iter_mut()
                .for_each(|longest| *longest = schedule.next().max(*longest));
        }
        for (longest, interval) in longest.into_iter().zip([1, 2, 4, 4].map(seconds)) {
            assert!(longest > interval.mul_f64(0.9) && longest <= interval + seconds(1) / 1_000);
        }
        let default = Backoff {
            initial: Duration::from_millis(200),
            max: seconds(10),
        };
        assert_eq!(Backoff::new(), default);
    }
}
