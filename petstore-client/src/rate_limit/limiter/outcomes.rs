//! How requests ended, as far as the store does not know it yet.

use super::permits::EndedRequest;
use crate::rate_limit::quota::instant::LedgerTime;
use crate::rate_limit::quota::reading::Outcome;

/// How many outcomes are kept for a store that is away.
const MAX_OUTCOMES: usize = 4_096;

/// The outcomes that the store does not know yet. All outcomes of a holder are numbered.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    ended: Vec<EndedRequest>,
    /// The number of the first of these.
    first: u64,
}

impl Outcomes {
    pub(super) fn add(&mut self, ended: EndedRequest) {
        self.ended.push(ended);
        if self.ended.len() > MAX_OUTCOMES {
            self.forget(MAX_OUTCOMES / 2);
        }
    }

    /// Returns the number of the first one.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Returns those from a number on.
    pub(super) fn from(&self, number: u64, now: LedgerTime) -> Vec<Outcome> {
        let new = self.ended.get(self.index(number)..).unwrap_or_default();
        new.iter().map(|ended| ended.outcome(now)).collect()
    }

    /// Removes those before a number, which the store knows.
    pub(super) fn forget_before(&mut self, number: u64) {
        self.forget(self.index(number).min(self.ended.len()));
    }

    fn index(&self, number: u64) -> usize {
        usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX)
    }

    fn forget(&mut self, count: usize) {
        self.ended.drain(..count);
        self.first += count as u64;
    }
}
