//! What a holder reports to the ledger, and what it is answered.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::instant::duration;
use super::reading::Outcome;
use super::terms::Terms;
use crate::rate_limit::view::{BlockReason, Blocked, WaitReason};

/// What a holder reports. Its figures are absolute and its outcomes are numbered, so what arrives twice counts once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) holder: u64,
    /// The number of the first of these outcomes, among all of the holder.
    pub(crate) first_outcome: u64,
    pub(crate) outcomes: Vec<Outcome>,
    /// The requests in flight, and whether one of them is a probe.
    pub(crate) in_flight: u64,
    pub(crate) has_probe: bool,
    /// The number of calls that wait.
    pub(crate) waiting: u64,
    /// Whether one of them is sent even if nothing is left, as a probe.
    pub(crate) forces: bool,
    /// Whether the last 429 was a ban.
    pub(crate) was_banned: bool,
    /// Whether the holder cannot reach its store.
    pub(crate) is_alone: bool,
    /// Whether the holder ends.
    pub(crate) leaves: bool,
    /// Whether everything that is known is to be forgotten.
    pub(crate) forgets: bool,
    pub(crate) terms: Terms,
}

/// What a holder may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) granted: u64,
    /// Whether this is a probe: one request, whose response says how many may follow.
    pub(crate) is_probe: bool,
    /// What the calls that go on waiting wait for.
    pub(crate) pause: Pause,
}

/// Why calls wait, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    reason: WaitReason,
    /// How long to wait before asking again, in microseconds.
    length: i64,
    /// The block that ends then, if that is why.
    block: Option<Blocked>,
}

impl Pause {
    /// Creates a pause until responses may have come.
    pub(crate) fn for_responses(reason: WaitReason, length: i64) -> Self {
        Self {
            reason,
            length,
            block: None,
        }
    }

    /// Creates a pause until a block ends, which is this far away.
    pub(crate) fn until_block_ends(reason: BlockReason, until: SystemTime, length: i64) -> Self {
        Self {
            reason: WaitReason::Blocked,
            length,
            block: Some(Blocked {
                reason,
                until,
                remaining: duration(length),
            }),
        }
    }

    pub(crate) fn reason(&self) -> WaitReason {
        self.reason
    }

    pub(crate) fn length(&self) -> i64 {
        self.length
    }

    pub(crate) fn is_block(&self) -> bool {
        self.block.is_some()
    }

    /// Returns the block whose end calls wait for, which is this far away.
    pub(crate) fn blocked(&self, left: i64) -> Option<Blocked> {
        let remaining = duration(left);
        self.block.map(|block| Blocked { remaining, ..block })
    }
}
