//! Which blocks of a key were logged, so that each block is one warning.

use std::time::{Duration, SystemTime};

use super::view::{BlockReason, Blocked};

/// The blocks of a key that were logged.
#[derive(Debug, Default)]
pub(super) struct LoggedBlocks {
    count: u64,
    last: Option<Blocked>,
}

impl LoggedBlocks {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether to log a 429, and counts its block then. `count` is the count when the
    /// request was sent: all requests that are in flight when a block begins are refused.
    pub(super) fn add(&mut self, blocked: Blocked, count: u64) -> bool {
        let was_in_flight = count < self.count;
        let is_known = self.last.is_some_and(|last| {
            let is_same = last.reason == blocked.reason && is_same_end(last.until, blocked.until);
            let is_first_ban =
                blocked.reason == BlockReason::Ban && last.reason != BlockReason::Ban;
            is_same || (was_in_flight && !is_first_ban)
        });
        if !is_known {
            self.count += 1;
            self.last = Some(blocked);
        }
        !is_known
    }
}

/// Returns whether two blocks end at the same time. A `Retry-After` has whole seconds.
fn is_same_end(one: SystemTime, other: SystemTime) -> bool {
    let difference = match one.duration_since(other) {
        Ok(difference) => difference,
        Err(error) => error.duration(),
    };
    difference <= Duration::from_secs(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(reason: BlockReason, seconds: u64) -> Blocked {
        let remaining = Duration::from_secs(seconds);
        Blocked {
            reason,
            until: SystemTime::UNIX_EPOCH + remaining,
            remaining,
        }
    }

    #[test]
    fn requests_in_flight_belong_to_the_block_that_began() {
        let mut logged = LoggedBlocks::default();
        let before = logged.count();
        assert!(logged.add(blocked(BlockReason::Unknown, 60), before));
        // Without a `Retry-After`, each refusal blocks from its own time.
        assert!(!logged.add(blocked(BlockReason::Unknown, 75), before));
        assert!(logged.add(blocked(BlockReason::Ban, 75), before));
        assert!(!logged.add(blocked(BlockReason::Unknown, 90), before));
    }

    #[test]
    fn a_request_that_was_sent_later_tells_of_another_block() {
        let mut logged = LoggedBlocks::default();
        assert!(logged.add(blocked(BlockReason::Unknown, 60), 0));
        let after = logged.count();
        assert!(!logged.add(blocked(BlockReason::Unknown, 61), after));
        assert!(logged.add(blocked(BlockReason::Unknown, 62), after));
        let after = logged.count();
        assert!(logged.add(blocked(BlockReason::Ban, 62), after));
        assert!(!logged.add(blocked(BlockReason::Ban, 61), logged.count()));
    }
}
