//! The outcomes of a member's requests that the record lacks.

use crate::rate_limit::quota::reading::{Block, Reading, RequestOutcome};

/// The maximum number of outcomes that are kept while the store is unreachable. The oldest are
/// dropped.
const MAX_OUTCOMES: usize = 64;

/// The outcomes that the record lacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes {
    /// Those that came after the last report.
    new: Vec<RequestOutcome>,
    /// Those of the last report, until it is known that the record has them.
    in_report: Vec<RequestOutcome>,
    /// The same for the block of the last 429: an outcome does not say that it is a ban, and may be
    /// dropped.
    new_block: Option<Block>,
    block_in_report: Option<Block>,
}

impl Outcomes {
    pub(crate) fn add(&mut self, outcome: &RequestOutcome) {
        if let Some(last) = self.new.last_mut()
            && let Some(merged) = merged(last, outcome)
        {
            *last = merged;
        } else {
            self.new.push(*outcome);
        }
    }

    pub(crate) fn set_block(&mut self, block: Block) {
        self.new_block = Some(block);
    }

    /// Forgets the block, because a response that is not a 429 has ended it.
    pub(crate) fn end_block(&mut self) {
        (self.new_block, self.block_in_report) = (None, None);
    }

    /// Returns the outcomes that were in no report yet.
    pub(crate) fn new_ones(&self) -> &[RequestOutcome] {
        &self.new
    }

    /// Returns how many requests have outcomes that were in no report yet.
    pub(crate) fn unreported(&self) -> u32 {
        self.new.iter().map(RequestOutcome::requests).sum()
    }

    /// Returns whether outcomes were reported in an update that has not succeeded yet.
    pub(crate) fn is_reporting(&self) -> bool {
        !self.in_report.is_empty()
    }

    /// Returns the outcomes for a report: also those of the last one, unless it has succeeded.
    pub(crate) fn report(&mut self) -> Vec<RequestOutcome> {
        self.in_report.append(&mut self.new);
        let surplus = self.in_report.len().saturating_sub(MAX_OUTCOMES);
        self.in_report.drain(..surplus);
        self.in_report.clone()
    }

    /// Returns the block for a report: also that of the last one, unless it has succeeded.
    pub(crate) fn report_block(&mut self) -> Option<Block> {
        self.block_in_report = self.new_block.take().or(self.block_in_report);
        self.block_in_report
    }

    /// Records that the last report has succeeded.
    pub(crate) fn reported(&mut self) {
        self.in_report.clear();
        self.block_in_report = None;
    }

    /// Moves all times to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&mut self, by: i64) {
        for outcome in self.new.iter_mut().chain(&mut self.in_report) {
            *outcome = outcome.moved(by);
        }
        for block in [&mut self.new_block, &mut self.block_in_report] {
            *block = block.map(|block| block.moved(by));
        }
    }
}

/// Merges two outcomes if they differ only in what is left of the same window.
fn merged(one: &RequestOutcome, other: &RequestOutcome) -> Option<RequestOutcome> {
    let (first, second) = (plain_reading(one)?, plain_reading(other)?);
    if (first.limit, first.reset) != (second.limit, second.reset) {
        return None;
    }
    let later = if other.sent() >= one.sent() {
        other
    } else {
        one
    };
    let mut head = *later.head()?;
    head.reading = Some(Reading {
        remaining: first.remaining.min(second.remaining),
        ..first
    });
    let requests = one.requests() + other.requests();
    Some(RequestOutcome::answered(
        later.sent(),
        later.ended(),
        false,
        requests,
        head,
    ))
}

/// Returns the reading of a success, unless the request was a probe.
fn plain_reading(outcome: &RequestOutcome) -> Option<Reading> {
    let is_success = outcome.head()?.status < 300;
    if is_success && !outcome.is_probe() {
        outcome.reading()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limit::quota::clock::{LocalTime, ServiceTime};
    use crate::rate_limit::quota::reading::ResponseHead;

    fn reading(limit: u64, remaining: u64, reset: i64) -> Option<Reading> {
        Some(Reading {
            limit,
            remaining,
            reset: ServiceTime(reset),
        })
    }

    /// Creates the outcome of two requests.
    fn outcome(sent: i64, status: u16, reading: Option<Reading>, is_probe: bool) -> RequestOutcome {
        let head = ResponseHead {
            status,
            date: None,
            reading,
            retry_after: None,
        };
        RequestOutcome::answered(LocalTime(sent), LocalTime(sent), is_probe, 2, head)
    }

    #[test]
    fn successes_of_one_window_are_reported_together() {
        let one = outcome(5, 200, reading(60, 7, 100), false);
        for (other, is_like) in [
            (outcome(6, 299, reading(60, 9, 100), false), true),
            (outcome(6, 300, reading(60, 9, 100), false), false),
            (outcome(6, 200, reading(61, 7, 100), false), false),
            (outcome(6, 200, reading(60, 7, 101), false), false),
            (outcome(6, 200, None, false), false),
            (outcome(6, 200, reading(60, 7, 100), true), false),
            (
                RequestOutcome::lost(LocalTime(6), LocalTime(6), false),
                false,
            ),
        ] {
            assert_eq!(merged(&one, &other).is_some(), is_like, "{other:?}");
        }
        let none = outcome(5, 200, None, false);
        assert!(
            merged(&none, &none).is_none(),
            "they may belong to different windows"
        );
        for (sent, last, remaining) in [(4, 5, 3), (5, 5, 3), (6, 6, 3)] {
            let status = 201;
            let other = outcome(sent, status, reading(60, remaining, 100), false);
            let merged = merged(&one, &other).unwrap();
            let head = merged.head().unwrap();
            assert_eq!(head.reading, reading(60, remaining, 100));
            assert_eq!((merged.requests(), merged.sent()), (4, LocalTime(last)));
            assert_eq!(head.status == status, sent >= 5, "{sent}");
        }
    }
}
