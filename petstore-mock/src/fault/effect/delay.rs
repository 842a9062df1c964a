//! Delay: the answer comes later, by a fixed time or by chance.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::seconds;
use crate::fault::random::Random;

/// How much later an answer comes, on the mock's clock.
///
/// ```
/// use std::time::Duration;
/// use petstore_mock::Delay;
///
/// let fixed = Delay::from(Duration::from_secs(2));
/// let spread = Delay::uniform(Duration::from_millis(20), Duration::from_millis(80));
/// let long_tail = Delay::log_normal(Duration::from_millis(90), 0.4);
/// # assert_ne!(fixed, spread);
/// # assert_ne!(spread, long_tail);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Delay(Spread);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum Spread {
    Seconds(#[serde(with = "seconds")] Duration),
    Uniform {
        #[serde(with = "seconds")]
        from: Duration,
        #[serde(with = "seconds")]
        to: Duration,
    },
    LogNormal {
        #[serde(with = "seconds")]
        median: Duration,
        sigma: f64,
    },
}

impl Delay {
    /// Returns a delay that is anything between two times, all of them equally likely.
    #[must_use]
    pub fn uniform(from: Duration, to: Duration) -> Self {
        Self(Spread::Uniform { from, to })
    }

    /// Returns a delay with a long tail, as networks have it: half of all are shorter than `median`,
    /// and `sigma` is the standard deviation of the logarithm (0.4: one in six is over 1.5 times the
    /// median; 1: over 2.7 times).
    #[must_use]
    pub fn log_normal(median: Duration, sigma: f64) -> Self {
        Self(Spread::LogNormal { median, sigma })
    }

    /// Draws one.
    pub(in crate::fault) fn draw(&self, random: &mut Random) -> Duration {
        match self.0 {
            Spread::Seconds(time) => time,
            Spread::Uniform { from, to } => {
                let (from, to) = (from.min(to), from.max(to));
                from.saturating_add(stretched(to.saturating_sub(from), random.unit()))
            }
            Spread::LogNormal { median, sigma } => {
                stretched(median, (sigma * random.normal()).exp())
            }
        }
    }
}

impl From<Duration> for Delay {
    fn from(time: Duration) -> Self {
        Self(Spread::Seconds(time))
    }
}

/// Multiplies; what is no time becomes none, and what is too long the longest there is.
fn stretched(time: Duration, by: f64) -> Duration {
    let seconds = time.as_secs_f64() * by;
    let beyond = if seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
    Duration::try_from_secs_f64(seconds).unwrap_or(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(delay: Delay, seed: u64) -> Vec<Duration> {
        let mut random = Random::new(seed);
        (0..1_000).map(|_| delay.draw(&mut random)).collect()
    }

    #[test]
    fn a_uniform_delay_lies_between_its_ends_and_fills_the_space() {
        let (from, to) = (Duration::from_secs(1), Duration::from_secs(3));
        for delay in [Delay::uniform(from, to), Delay::uniform(to, from)] {
            let draws = draws(delay, 1);
            assert!(draws.iter().all(|draw| (from..to).contains(draw)));
            let early = draws.iter().filter(|draw| draw.as_secs() < 2).count();
            assert!((450..550).contains(&early), "{early}");
        }
    }

    #[test]
    fn half_of_the_log_normal_delays_are_below_the_median_and_some_far_above() {
        let median = Duration::from_secs(1);
        let draws = draws(Delay::log_normal(median, 0.4), 1);
        let below = draws.iter().filter(|draw| **draw < median).count();
        assert!((450..550).contains(&below), "{below}");
        let far = draws.iter().filter(|draw| draw.as_secs_f64() > 1.5).count();
        assert!((110..200).contains(&far), "{far}");
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let delay = Delay::log_normal(Duration::from_secs(1), 1.0);
        assert_eq!(draws(delay, 5), draws(delay, 5));
        assert_ne!(draws(delay, 5), draws(delay, 6));
    }

    #[test]
    fn a_spread_that_makes_no_sense_makes_no_panic() {
        for sigma in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            draws(Delay::log_normal(Duration::from_secs(1), sigma), 1);
        }
        draws(Delay::uniform(Duration::ZERO, Duration::MAX), 1);
    }
}
