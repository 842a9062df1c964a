//! Which blocks of a key were logged, so that each block is one warning.

use super::quota::instant::{LedgerTime, SECOND};
use super::view::BlockReason;

/// The blocks of a key that were logged.
#[derive(Debug, Default)]
pub(super) struct LoggedBlocks {
    count: u64,
    last: Option<(BlockReason, LedgerTime)>,
}

impl LoggedBlocks {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether to log a 429, and counts its block then. `count` is the count when the
    /// request was sent: all requests that are in flight when a block begins are refused.
    pub(super) fn add(&mut self, reason: BlockReason, ends: LedgerTime, count: u64) -> bool {
        let was_in_flight = count < self.count;
        let is_known = self.last.is_some_and(|(last, last_end)| {
            // A `Retry-After` has whole seconds.
            let is_same_end = last_end.0.abs_diff(ends.0) <= SECOND.unsigned_abs();
            let is_first_ban = reason == BlockReason::Ban && last != BlockReason::Ban;
            (last == reason && is_same_end) || (was_in_flight && !is_first_ban)
        });
        if !is_known {
            self.count += 1;
            self.last = Some((reason, ends));
        }
        !is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BlockReason::{Ban, Unknown};

    fn at(seconds: i64) -> LedgerTime {
        LedgerTime(seconds * SECOND)
    }

    #[test]
    fn requests_in_flight_belong_to_the_block_that_began() {
        let mut logged = LoggedBlocks::default();
        let before = logged.count();
        assert!(logged.add(Unknown, at(60), before));
        // Without a `Retry-After`, each refusal blocks from its own time.
        assert!(!logged.add(Unknown, at(75), before));
        assert!(logged.add(Ban, at(75), before));
        assert!(!logged.add(Unknown, at(90), before));
    }

    #[test]
    fn a_request_that_was_sent_later_tells_of_another_block() {
        let mut logged = LoggedBlocks::default();
        assert!(logged.add(Unknown, at(60), 0));
        let after = logged.count();
        assert!(!logged.add(Unknown, at(61), after));
        assert!(logged.add(Unknown, at(62), after));
        let after = logged.count();
        assert!(logged.add(Ban, at(62), after));
        assert!(!logged.add(Ban, at(61), logged.count()));
    }
}
