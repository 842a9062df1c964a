//! The back-off schedule: the only place that knows the `backoff` crate.

use std::time::Duration;

use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;

/// Waits between attempts: full jitter over an interval that doubles.
#[derive(Debug)]
pub(crate) struct Schedule(ExponentialBackoff);

impl Schedule {
    /// Starts a schedule whose first wait lies between nothing and `first`, and whose waits never
    /// exceed `longest`.
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        // A factor of 1.0 spreads a wait over 0 to twice the interval, so half of it is full jitter.
        let first = first.min(longest) / 2;
        Self(ExponentialBackoff {
            current_interval: first,
            initial_interval: first,
            randomization_factor: 1.0,
            multiplier: 2.0,
            max_interval: longest / 2,
            max_elapsed_time: None,
            ..ExponentialBackoff::default()
        })
    }

    pub(crate) fn next(&mut self) -> Duration {
        // `None` only comes when a total time is set, and none is.
        self.0.next_backoff().unwrap_or(self.0.max_interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_each_wait_over_the_whole_of_a_doubling_interval() {
        let (first, longest) = (Duration::from_millis(200), Duration::from_secs(1));
        let mut seen = [(Duration::MAX, Duration::ZERO); 5];
        for _ in 0..2_000 {
            let mut schedule = Schedule::new(first, longest);
            for (low, high) in &mut seen {
                let wait = schedule.next();
                *low = wait.min(*low);
                *high = wait.max(*high);
            }
        }
        for ((low, high), ceiling) in seen.into_iter().zip([200, 400, 800, 1_000, 1_000]) {
            let ceiling = Duration::from_millis(ceiling);
            assert!(high <= ceiling + Duration::from_nanos(1), "{high:?} of {ceiling:?}");
            assert!(high > ceiling.mul_f64(0.95), "{high:?} of {ceiling:?}");
            assert!(low < ceiling.mul_f64(0.05), "{low:?} of {ceiling:?}");
        }
    }
}
