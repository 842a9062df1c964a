//! Delays of responses, and durations in the JSON of faults.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use super::trigger::Random;
use crate::clock;

/// A duration; in JSON, a number of seconds with fractions.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub(super) struct Seconds(pub(super) Duration);

impl TryFrom<f64> for Seconds {
    type Error = &'static str;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        let error = "a time is a number of seconds from 0 to 253402300799, such as 1.5";
        clock::time(seconds).map(Self).ok_or(error)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // Whole seconds without a fraction.
        if self.0.subsec_nanos() == 0 {
            self.0.as_secs().serialize(to)
        } else {
            self.0.as_secs_f64().serialize(to)
        }
    }
}

/// A delay of a response on the mock's clock.
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
    Seconds(Seconds),
    Uniform { from: Seconds, to: Seconds },
    LogNormal { median: Seconds, sigma: f64 },
}

impl Delay {
    /// Returns a uniformly distributed delay.
    #[must_use]
    pub fn uniform(from: Duration, to: Duration) -> Self {
        Self(Spread::Uniform { from: Seconds(from), to: Seconds(to) })
    }

    /// Returns a log-normally distributed delay, with a long tail like that of networks. Half of
    /// the delays are shorter than `median`. `sigma` is the standard deviation of the logarithm
    /// (0.4: one in six is over 1.5 times the median; 1: over 2.7 times).
    #[must_use]
    pub fn log_normal(median: Duration, sigma: f64) -> Self {
        Self(Spread::LogNormal { median: Seconds(median), sigma })
    }

    pub(super) fn draw(&self, random: &mut Random) -> Duration {
        match self.0 {
            Spread::Seconds(time) => time.0,
            Spread::Uniform { from, to } => {
                let (from, to) = (from.0.min(to.0), from.0.max(to.0));
                from.saturating_add(stretched(to.saturating_sub(from), random.unit()))
            }
            Spread::LogNormal { median, sigma } => {
                stretched(median.0, (sigma * random.normal()).exp())
            }
        }
    }
}

impl From<Duration> for Delay {
    fn from(time: Duration) -> Self {
        Self(Spread::Seconds(Seconds(time)))
    }
}

/// Multiplies. An invalid product becomes zero, and one that is too large the maximum.
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
