//! Delays of responses.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::trigger::Random;
use crate::clock::seconds;

/// A delay of a response on the mock's clock.
///
/// ```
/// use std::time::Duration;
/// use petstore_mock::{Delay, Effect};
///
/// let fixed = Effect::Delay(Delay::from(Duration::from_secs(2)));
/// let (from, to) = (Duration::from_millis(20), Duration::from_millis(80));
/// let spread = Effect::Delay(Delay::Uniform { from, to });
/// # assert_ne!(fixed, spread);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Delay {
    /// Always the same delay.
    #[serde(rename = "seconds")]
    Fixed(#[serde(with = "seconds")] Duration),
    /// A uniformly distributed delay.
    Uniform {
        /// The minimum.
        #[serde(with = "seconds")]
        from: Duration,
        /// The maximum.
        #[serde(with = "seconds")]
        to: Duration,
    },
}

impl Delay {
    pub(super) fn draw(&self, random: &mut Random) -> Duration {
        match *self {
            Self::Fixed(time) => time,
            Self::Uniform { from, to } => {
                let (from, to) = (from.min(to), from.max(to));
                from.saturating_add(stretched(to.saturating_sub(from), random.unit()))
            }
        }
    }
}

impl From<Duration> for Delay {
    fn from(time: Duration) -> Self {
        Self::Fixed(time)
    }
}

/// Multiplies a duration by a number from 0 to 1.
fn stretched(time: Duration, by: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * by).unwrap_or(Duration::MAX)
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
        for delay in [
            Delay::Uniform { from, to },
            Delay::Uniform { from: to, to: from },
        ] {
            let draws = draws(delay, 1);
            assert!(draws.iter().all(|draw| (from..to).contains(draw)));
            let early = draws.iter().filter(|draw| draw.as_secs() < 2).count();
            assert!((450..550).contains(&early), "{early}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let delay = Delay::Uniform {
            from: Duration::ZERO,
            to: Duration::from_secs(1),
        };
        assert_eq!(draws(delay, 5), draws(delay, 5));
        assert_ne!(draws(delay, 5), draws(delay, 6));
    }

    #[test]
    fn an_extreme_delay_makes_no_panic() {
        draws(
            Delay::Uniform {
                from: Duration::ZERO,
                to: Duration::MAX,
            },
            1,
        );
    }
}
