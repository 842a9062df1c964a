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

/// What the calls in the queue wait for, by the last answer.
#[derive(Debug, Default)]
pub(super) struct Waits {
    last: Option<LastPause>,
}

/// A pause, and when it ends on the limiter's clock.
#[derive(Debug, Clone, Copy)]
struct LastPause {
    pause: Pause,
    ends: LedgerTime,
    ask_again: LedgerTime,
}

impl Waits {
    /// Takes over an answer. `pause` is what it says to all calls that wait now, if it does. Returns whether a block
    /// begins, which may be too long for some of them.
    pub(super) fn answer(&mut self, pause: Option<Pause>, now: LedgerTime) -> bool {
        let was_block = self.is_block();
        self.last = pause.map(|pause| {
            let ends = now.plus(pause.length());
            LastPause {
                pause,
                ends,
                ask_again: ends.min(now.plus(HEARTBEAT)),
            }
        });
        self.is_block() && !was_block
    }

    fn is_block(&self) -> bool {
        self.last.is_some_and(|last| last.pause.is_block())
    }

    /// Forgets the last answer, so that the next one decides.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Returns when to ask again, if the last answer said it.
    pub(super) fn ask_again(&self) -> Option<LedgerTime> {
        self.last.map(|last| last.ask_again)
    }

    /// Returns what calls wait for, if the last answer said it.
    pub(super) fn wait(&self, now: LedgerTime) -> Option<Wait> {
        self.last.map(|last| Wait {
            reason: last.pause.reason(),
            blocked: last.pause.blocked(last.ends.since(now)),
        })
    }
}
