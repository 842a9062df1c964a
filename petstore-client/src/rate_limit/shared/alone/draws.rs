//! Random numbers of a member that is alone.

use super::observation::number;

/// A sequence of random numbers (splitmix64). A member's random id is the seed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number from 0 (inclusive) to 1 (exclusive).
    pub(crate) fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number((bits ^ (bits >> 31)) >> 11) / number(1 << 53)
    }
}

/// Turns a random number from 0 up to 1 into an exponentially distributed one.
pub(crate) fn exponential(draw: f64) -> f64 {
    -(1.0 - draw).max(1e-9).ln()
}
