//! One quota as the service counts it. Times are microseconds on the service's clock.

use std::collections::VecDeque;

pub(in crate::simulator) const SECOND: i64 = 1_000_000;
pub(in crate::simulator) const MINUTE: i64 = 60 * SECOND;
pub(in crate::simulator) const DAY: i64 = 86_400 * SECOND;

pub(in crate::simulator) struct Window {
    pub(in crate::simulator) limit: u64,
    pub(in crate::simulator) length: i64,
    sliding: bool,
    /// How much later than the clock's minute a fixed window begins.
    phase: i64,
    begun: i64,
    used: u64,
    /// When requests came, if the window slides.
    log: VecDeque<i64>,
}

impl Window {
    pub(in crate::simulator) fn new(limit: u64, length: i64, sliding: bool, phase: i64) -> Self {
        Self {
            limit,
            length,
            sliding,
            phase,
            begun: i64::MIN,
            used: 0,
            log: VecDeque::new(),
        }
    }

    pub(in crate::simulator) fn remaining(&mut self, now: i64) -> u64 {
        if self.sliding {
            while self.log.front().is_some_and(|at| at + self.length <= now) {
                self.log.pop_front();
            }
            return self.limit.saturating_sub(self.log.len() as u64);
        }
        let begun = now - (now - self.phase).rem_euclid(self.length);
        if begun != self.begun {
            (self.begun, self.used) = (begun, 0);
        }
        self.limit.saturating_sub(self.used)
    }

    pub(in crate::simulator) fn count(&mut self, now: i64) {
        if self.sliding {
            self.log.push_back(now);
        } else {
            self.used += 1;
        }
    }

    /// Returns when requests become free: all of them, or the oldest one if the window slides.
    pub(in crate::simulator) fn reset(&mut self, now: i64) -> i64 {
        self.remaining(now);
        if self.sliding {
            return self.log.front().map_or(now, |at| *at) + self.length;
        }
        self.begun + self.length
    }
}
