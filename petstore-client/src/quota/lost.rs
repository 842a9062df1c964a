//! Requests of unknown fate: they ended without an answer, and may have been counted or not.
//!
//! Each keeps its reservation until an answer comes to a request that was sent after it ended:
//! by then the service's figure holds it, if it ever will.

use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// How many ended when so many requests had been sent, oldest first.
    ended: VecDeque<(u64, u32)>,
    total: u32,
}

impl Lost {
    pub(crate) fn total(&self) -> u32 {
        self.total
    }

    /// Takes in a request that ended when `sent` requests had been sent in all.
    pub(crate) fn add(&mut self, sent: u64) {
        self.total += 1;
        match self.ended.back_mut() {
            Some((at, count)) if *at == sent => *count += 1,
            _ => self.ended.push_back((sent, 1)),
        }
    }

    /// Settles those that ended before the request with this number was sent; returns how many.
    pub(crate) fn settle(&mut self, number: u64) -> u32 {
        let before = self.total;
        while let Some(&(at, count)) = self.ended.front()
            && at < number
        {
            self.total -= count;
            self.ended.pop_front();
        }
        before - self.total
    }
}
