//! What 429s have shown: until when requests are blocked, whether the service hides a quota, and
//! whether a probe must go first.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::LocalTime;
use super::reading::{Answer, Block, Reading, ResponseHead};
use crate::rate_limit::view::BlockReason;

/// The block of a 429 without `Retry-After` that describes no used-up quota. Quotas are counted by the minute
/// (specification, section 8).
const DEFAULT_BLOCK: Duration = Duration::from_secs(60);
const MIN_BLOCK: Duration = Duration::from_secs(1);
/// The longest block: a day's quota and an hour of slack. A longer one ends after this time, with a
/// probe.
pub(crate) const MAX_BLOCK: Duration = Duration::from_secs(25 * 3600);
/// How much the wait of a 429 may differ from the time to the reset of its quota, because services
/// round both.
const MAX_ROUNDING: Duration = Duration::from_secs(2);

/// What 429s have shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Refusals {
    /// The block of the last 429. It is kept past its end, until a later response is not a 429.
    blocked: Option<Block>,
    /// Whether a response has shown how much may be sent, or that the service does not describe its
    /// quotas, and nothing has put that in doubt since.
    is_up_to_date: bool,
    /// Whether the minute's quota stays known while responses describe another one: a response other
    /// than a 429 came while it was known, and no unforeseen 429 since.
    remembers_minute: bool,
    /// When the last 429 came.
    throttled_at: Option<LocalTime>,
    /// The end of the last unforeseen block: its 429 described no used-up quota, so the service
    /// hides one.
    unforeseen: Option<LocalTime>,
}

impl Refusals {
    /// Records a 429, and the reading of it. Returns its block.
    pub(super) fn record(
        &mut self,
        head: &ResponseHead,
        reading: Option<Reading>,
        answer: &Answer,
    ) -> Block {
        self.throttled_at = Some(answer.received);
        let spent = reading.filter(|reading| reading.remaining == 0);
        let block = block(head, spent, answer);
        if spent.is_none() {
            self.unforeseen = self.unforeseen.max(Some(block.until));
            self.remembers_minute = false;
        }
        // A shorter wait does not end a longer one.
        if self.blocked.is_none_or(|known| known.until <= block.until) {
            self.blocked = Some(block);
        }
        block
    }

    /// Records a response that is not a 429.
    pub(super) fn record_not_refused(
        &mut self,
        answer: &Answer,
        is_probe: bool,
        knows_minute: bool,
    ) {
        self.remembers_minute = knows_minute;
        let sent = answer.sent;
        let is_later = self
            .throttled_at
            .is_none_or(|at| sent > at || is_probe && sent == at);
        // A forced request that succeeds ends the block.
        if is_later && (is_probe || self.blocked_at(answer.received).is_none()) {
            self.blocked = None;
        }
    }

    /// Records that the last 429 was a ban. Only the body of the response says that.
    pub(crate) fn record_ban(&mut self) {
        if let Some(block) = &mut self.blocked {
            block.reason = BlockReason::Ban;
        }
    }

    /// Returns the block of a 429, if it is in force.
    pub(crate) fn blocked_at(&self, now: LocalTime) -> Option<Block> {
        self.blocked.filter(|block| now < block.until)
    }

    /// Returns the block of the last 429, until a later response is not a 429.
    pub(crate) fn last_block(&self) -> Option<Block> {
        self.blocked
    }

    /// Replaces the block of the last 429.
    pub(crate) fn set_block(&mut self, block: Option<Block>) {
        self.blocked = block;
    }

    /// Returns whether it is unknown how much may be sent: before the first response,
    /// after a 429, and after a call of [`doubt`](Self::doubt).
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.is_up_to_date || self.blocked.is_some()
    }

    /// Records that what is known may be out of date.
    pub(crate) fn doubt(&mut self) {
        self.is_up_to_date = false;
    }

    /// Records that a response has shown how much may be sent.
    pub(super) fn end_doubt(&mut self) {
        self.is_up_to_date = true;
    }

    pub(super) fn remembers_minute(&self) -> bool {
        self.remembers_minute
    }

    /// Returns the time since the block of the last unforeseen 429 ended.
    pub(crate) fn since_unforeseen(&self, now: LocalTime) -> Option<Duration> {
        self.unforeseen.map(|end| now.since(end))
    }

    #[cfg(test)]
    pub(crate) fn set_unforeseen(&mut self, end: LocalTime) {
        self.unforeseen = Some(end);
    }
}

/// Returns the block of a 429. `spent` is the used-up quota that it describes, if any.
fn block(head: &ResponseHead, spent: Option<Reading>, answer: &Answer) -> Block {
    let until_reset = spent.map(|reading| reading.reset.since(answer.service_now));
    let asked = head.retry_after.or(until_reset).unwrap_or(DEFAULT_BLOCK);
    let asked = asked.max(MIN_BLOCK);
    let reason = match (spent, until_reset) {
        // The wait is for this quota only if it ends with the reset.
        (Some(spent), Some(left)) if left.abs_diff(asked) <= MAX_ROUNDING => {
            BlockReason::Quota(spent.quota(answer.service_now))
        }
        _ => BlockReason::Unknown,
    };
    Block {
        until: answer.received.plus(asked.min(MAX_BLOCK)),
        named: head.date.unwrap_or(answer.service_now).plus(asked),
        reason,
    }
}
