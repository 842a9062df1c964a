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
    /// The number of answers.
    answers: u64,
    last: Option<LastPause>,
    /// The end of the block that waiting calls were told of, and whether there is a new one.
    announced: Option<LedgerTime>,
    is_news: bool,
}

/// A pause, and when it ends on the limiter's clock.
#[derive(Debug, Clone, Copy)]
struct LastPause {
    pause: Pause,
    ends: LedgerTime,
    ask_again: LedgerTime,
}

impl Waits {
    /// Takes over an answer. `pause` is what it says to all calls that wait now, if it does.
    pub(super) fn answer(&mut self, pause: Option<Pause>, now: LedgerTime) {
        self.answers += 1;
        self.last = pause.map(|pause| {
            let ends = now.plus(pause.length());
            LastPause {
                pause,
                ends,
                ask_again: ends.min(now.plus(HEARTBEAT)),
            }
        });
        self.note_block();
    }

    /// Notes whether there is a block that waiting calls were not told of: it may be too long for them.
    fn note_block(&mut self) {
        let ends = self.last.filter(|last| last.pause.is_block());
        let ends = ends.map(|last| last.ends);
        let is_known = match (self.announced, ends) {
            (Some(known), Some(ends)) => known.0.abs_diff(ends.0) < SECOND.unsigned_abs(),
            (_, None) => true,
            (None, Some(_)) => false,
        };
        self.is_news |= !is_known;
        self.announced = ends;
    }

    /// Forgets the last answer: it was that of a store that is away now.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Returns whether there is a new block, once.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    pub(super) fn answers(&self) -> u64 {
        self.answers
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
