//! What the calls in the queue wait for.

use crate::rate_limit::quota::Pause;
use crate::rate_limit::quota::instant::{LedgerTime, SECOND};
use crate::rate_limit::view::{Blocked, WaitReason};

/// How often a holder reports at least, while it waits or has requests in flight.
pub(super) const HEARTBEAT: i64 = SECOND;

/// Why a call waits, and until when if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) reason: WaitReason,
    pub(crate) blocked: Option<Blocked>,
}

/// What the calls in the queue wait for by the last answer, on the limiter's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastPause {
    pause: Pause,
    ends: LedgerTime,
    ask_again: LedgerTime,
}

impl LastPause {
    pub(super) fn new(pause: Pause, now: LedgerTime) -> Self {
        let ends = now.plus(pause.length());
        Self {
            pause,
            ends,
            ask_again: ends.min(now.plus(HEARTBEAT)),
        }
    }

    pub(super) fn is_block(&self) -> bool {
        self.pause.is_block()
    }

    /// Returns when to ask again.
    pub(super) fn ask_again(&self) -> LedgerTime {
        self.ask_again
    }

    /// Returns what calls wait for.
    pub(super) fn wait(&self, now: LedgerTime) -> Wait {
        Wait {
            reason: self.pause.reason(),
            blocked: self.pause.blocked(self.ends.since(now)),
        }
    }
}
