//! Chance that can be had again: the same seed gives the same draws, with every version of this
//! crate. So it is written out here, and no library's.

/// A generator after Steele, Lea and Flood's `SplitMix64`.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws from 0 (included) to 1 (not included), evenly.
    pub(super) fn unit(&mut self) -> f64 {
        // 32 bits are exact in a float, and more than any test can tell apart.
        let bits = u32::try_from(self.next() >> 32).unwrap_or(0);
        f64::from(bits) / 4_294_967_296.0
    }

    /// Draws from the standard normal distribution, by the method of Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.unit(), self.unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_what_the_published_generator_does() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_are_spread_as_they_should_be() {
        let mut random = Random::new(7);
        let units: Vec<f64> = (0..10_000).map(|_| random.unit()).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        let below = units.iter().filter(|unit| **unit < 0.2).count();
        assert!((1_900..2_100).contains(&below), "{below}");
        let normals: Vec<f64> = (0..10_000).map(|_| random.normal()).collect();
        let within = normals.iter().filter(|normal| normal.abs() < 1.0).count();
        assert!((6_700..6_950).contains(&within), "{within}");
    }
}
