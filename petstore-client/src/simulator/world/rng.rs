//! Seeded random numbers (splitmix64).

pub(in crate::simulator) struct Rng(u64);

impl Rng {
    pub(in crate::simulator) fn new(seed: u64) -> Self {
        Self(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(in crate::simulator) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 (inclusive) to `end` (exclusive).
    pub(in crate::simulator) fn below(&mut self, end: i64) -> i64 {
        let end = u64::try_from(end).unwrap().max(1);
        i64::try_from(self.next() % end).unwrap()
    }

    /// Returns a number from 0 (inclusive) to 1 (exclusive).
    pub(in crate::simulator) fn unit(&mut self) -> f64 {
        self.below(1 << 52) as f64 / (1_u64 << 52) as f64
    }

    /// Returns a number with a standard normal distribution (Box and Muller).
    pub(in crate::simulator) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns true with this probability in a thousand.
    pub(in crate::simulator) fn in_thousand(&mut self, cases: u32) -> bool {
        cases > 0 && self.below(1000) < i64::from(cases)
    }
}
