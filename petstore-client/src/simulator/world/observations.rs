//! Records what clients know about limits, to tell avoidable refusals from others.

use std::collections::HashMap;

use super::service::Reply;
use super::window::{DAY, MINUTE, SECOND};

pub(in crate::simulator) struct Observations {
    day: u64,
    /// By limit: the last reset that a response announced, and when its window became known.
    resets: HashMap<u64, (i64, i64)>,
    in_a_row: u64,
    /// Requests whose outcome said nothing about limits: in total, and the longest series.
    pub(in crate::simulator) uninformative: u64,
    pub(in crate::simulator) most_in_a_row: u64,
}

impl Observations {
    pub(in crate::simulator) fn new(day: u64) -> Self {
        Self {
            day,
            resets: HashMap::new(),
            in_a_row: 0,
            uninformative: 0,
            most_in_a_row: 0,
        }
    }

    pub(in crate::simulator) fn nothing(&mut self) {
        self.uninformative += 1;
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

    /// Returns whether the window that caused a refusal was known when the request was sent.
    pub(in crate::simulator) fn foreseen(&self, sent: i64, refusal: &Reply) -> bool {
        let quota = refusal
            .rate
            .map(|(limit, _, reset)| self.known(limit, reset));
        quota.flatten().is_some_and(|since| since <= sent)
    }

    /// Returns when a window became known; `None` if no response has described it.
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
