//! Requests of unknown fate: they ended without an answer, and may have been counted or not.
//!
//! Each keeps its reservation until an answer comes to a request that was sent after it ended, and
//! so long after it was itself sent that it cannot be on its way any more: a request that is given
//! up may still reach the service, and be overtaken by a later one. By then the service's figure
//! holds it, if it ever will.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::time::Time;

/// How long a request may be on its way to the service. One that takes longer (lost on the way and
/// sent again by TCP more than once) is too rare to wait for.
const ON_THE_WAY: Duration = Duration::from_secs(1);
/// For how long one that was lost lets expect more.
const LATELY: Duration = Duration::from_secs(120);

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Lost {
    /// Oldest first.
    ended: VecDeque<Ended>,
    total: u32,
    /// When the last of all was sent.
    last: Option<Time>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Ended {
    /// How many requests had been sent when it ended.
    before: u64,
    /// When it was sent.
    sent: Time,
    count: u32,
}

impl Lost {
    pub(crate) fn total(&self) -> u32 {
        self.total
    }

    /// Returns when the last of all was sent.
    pub(crate) fn last(&self) -> Option<Time> {
        self.last
    }

    /// Takes in a request, sent at `sent`, that ended when `before` requests had been sent in all.
    pub(crate) fn add(&mut self, before: u64, sent: Time) {
        self.total += 1;
        self.last = self.last.max(Some(sent));
        match self.ended.back_mut() {
            Some(last) if last.before == before => {
                last.count += 1;
                last.sent = last.sent.max(sent);
            }
            _ => self.ended.push_back(Ended { before, sent, count: 1 }),
        }
    }

    /// Returns whether requests get lost these minutes.
    pub(crate) fn is_usual(&self, now: Time) -> bool {
        self.last.is_some_and(|last| now < last.after(LATELY))
    }

    /// Returns when all of them have reached the service, if they ever will, where that is not
    /// over: the answer to a request that is sent then settles them.
    pub(crate) fn on_the_way(&self, now: Time) -> Option<Time> {
        let known = self.ended.iter().filter(|ended| ended.sent <= now);
        known.map(|ended| ended.sent.after(ON_THE_WAY)).max().filter(|at| *at > now)
    }

    /// Takes in that the service's clock is ahead of what was thought.
    pub(crate) fn move_by(&mut self, by: i64) {
        self.ended.iter_mut().for_each(|ended| ended.sent = ended.sent.moved(by));
        self.last = self.last.map(|last| last.moved(by));
    }

    /// Settles those that are over and done with before the request with this number was sent;
    /// returns how many.
    pub(crate) fn settle(&mut self, number: u64, sent: Time) -> u32 {
        let before = self.total;
        while let Some(first) = self.ended.front()
            && first.before < number
            && (sent >= first.sent.after(ON_THE_WAY) || sent < first.sent)
        {
            self.total -= first.count;
            self.ended.pop_front();
        }
        before - self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time(1_800_000_000_000_000).after(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn keeps_a_lost_request_until_a_later_one_cannot_have_overtaken_it() {
        let mut lost = Lost::default();
        lost.add(5, at(0.0));
        assert_eq!(lost.settle(5, at(2.0)), 0, "that one was sent before it ended");
        assert_eq!(lost.settle(6, at(0.9)), 0, "it may be on its way still");
        assert_eq!(lost.on_the_way(at(0.9)), Some(at(1.0)));
        assert_eq!((lost.settle(7, at(1.0)), lost.total()), (1, 0));
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_keep_them_for_good() {
        let mut lost = Lost::default();
        lost.add(5, at(3_600.0));
        assert_eq!(lost.on_the_way(at(0.0)), None);
        assert_eq!(lost.settle(6, at(0.0)), 1);
    }

    #[test]
    fn what_was_noted_by_a_wrong_clock_moves_with_it() {
        let mut lost = Lost::default();
        lost.add(5, at(0.0));
        lost.move_by(3_600_000_000);
        assert_eq!(lost.settle(6, at(3_600.5)), 0);
        assert_eq!(lost.settle(7, at(3_601.0)), 1);
    }
}
