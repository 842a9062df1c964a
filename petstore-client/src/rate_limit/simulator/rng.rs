//! Random numbers that depend only on a seed.

pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            rng.next();
        }
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a number from 0 to 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn happens(&mut self, chance: f64) -> bool {
        chance > 0.0 && self.unit() < chance
    }

    /// Returns a time around `mean`: most are between two thirds and three halves of it.
    pub(super) fn around(&mut self, mean: f64) -> f64 {
        const SIGMA: f64 = 0.3;
        let normal = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let normal = normal * (std::f64::consts::TAU * self.unit()).cos();
        mean * (SIGMA * normal).exp()
    }
}
