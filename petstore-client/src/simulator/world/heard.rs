//! Records what clients know about limits, to tell avoidable refusals from others.

use std::collections::HashMap;

use super::service::Reply;
use super::window::{DAY, MINUTE, SECOND};

pub(in crate::simulator) struct Heard {
    day: u64,
    /// The last reset that was told, and since when that window is known, by the limit.
    resets: HashMap<u64, (i64, i64)>,
    in_a_row: u64,
    /// Requests whose end told nothing of limits: in all, and the most in a row.
    pub(in crate::simulator) unheard: u64,
    pub(in crate::simulator) most_in_a_row: u64,
}

impl Heard {
    pub(in crate::simulator) fn new(day: u64) -> Self {
        Self {
            day,
            resets: HashMap::new(),
            in_a_row: 0,
            unheard: 0,
            most_in_a_row: 0,
        }
    }

    pub(in crate::simulator) fn nothing(&mut self) {
        self.unheard += 1;
        self.in_a_row += 1;
        self.most_in_a_row = self.most_in_a_row.max(self.in_a_row);
    }

    pub(in crate::simulator) fn answer(&mut self, now: i64, reply: &Reply) {
        match (reply.rate, reply.garbage) {
            (Some((limit, _, reset)), None) => {
                let known = self.known(limit, reset).unwrap_or(now);
                self.resets.insert(limit, (reset, known));
                self.in_a_row = 0;
            }
            _ => self.nothing(),
        }
    }

    /// Returns whether anything was known of the quota that a refusal is about, when the request
    /// was sent.
    pub(in crate::simulator) fn foretold(&self, sent: i64, refusal: &Reply) -> bool {
        let quota = refusal
            .rate
            .map(|(limit, _, reset)| self.known(limit, reset));
        quota.flatten().is_some_and(|since| since <= sent)
    }

    /// Returns since when a window is known.
    fn known(&self, limit: u64, reset: i64) -> Option<i64> {
        let length = if limit == self.day {
            DAY / SECOND
        } else {
            MINUTE / SECOND
        };
        let (last, since) = self.resets.get(&limit)?;
        (*last > reset - length).then_some(*since)
    }
}
