//! Which of the requests that a fault is meant for it hits: a pure count, or a seeded chance.

use serde::{Deserialize, Serialize};

use super::random::Random;

/// Which of the matching requests are hit. They are counted from 1, in order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum When {
    #[default]
    Always,
    /// The first so many.
    First(u64),
    /// This one alone.
    Nth(u64),
    /// All after so many.
    After(u64),
    /// Each with this probability, from 0 to 1.
    Chance(f64),
}

impl When {
    /// Whether the fault hits the request with this number. Chance is drawn once for each request,
    /// so that the draws hang on nothing but their order.
    pub(super) fn hits(self, number: u64, random: &mut Random) -> bool {
        match self {
            Self::Always => true,
            Self::First(count) => number <= count,
            Self::Nth(nth) => number == nth,
            Self::After(count) => number > count,
            Self::Chance(chance) => random.unit() < chance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(when: When) -> Vec<u64> {
        let mut random = Random::new(3);
        (1..=6).filter(|number| when.hits(*number, &mut random)).collect()
    }

    #[test]
    fn counts_from_one() {
        assert_eq!(hits(When::Always), [1, 2, 3, 4, 5, 6]);
        assert_eq!(hits(When::First(2)), [1, 2]);
        assert_eq!(hits(When::Nth(3)), [3]);
        assert_eq!(hits(When::After(4)), [5, 6]);
        assert_eq!(hits(When::First(0)), [0; 0]);
    }

    #[test]
    fn chance_has_its_ends_and_can_be_had_again() {
        assert_eq!(hits(When::Chance(1.0)).len(), 6);
        assert_eq!(hits(When::Chance(0.0)).len(), 0);
        assert_eq!(hits(When::Chance(f64::NAN)).len(), 0);
        assert_eq!(hits(When::Chance(0.5)), hits(When::Chance(0.5)));
        assert!((1..6).contains(&hits(When::Chance(0.5)).len()));
    }
}
