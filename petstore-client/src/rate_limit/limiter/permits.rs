//! The permits of a limiter. They are counted until they end, even if nobody polls their calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::rate_limit::quota::instant::{LedgerTime, SECOND};
use crate::rate_limit::quota::reading::{Outcome, ResponseHead};

/// A call that does not take its permit in this time loses it. Its task may not be polled.
const TAKEN_WITHIN: i64 = SECOND;

/// Numbers the permits of all limiters. The child of a fork goes on with it, so it ends no permit by the number of
/// another.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// The permits that were granted and have not ended.
#[derive(Debug, Default)]
pub(super) struct Permits {
    granted: BTreeMap<u64, Granted>,
    probes: u64,
    /// When the first one ends by itself, or earlier.
    next_end: Option<LedgerTime>,
}

#[derive(Debug, Clone, Copy)]
struct Granted {
    is_probe: bool,
    /// When the request was sent, at the earliest.
    sent: Option<LedgerTime>,
    /// When it ends by itself.
    ends: LedgerTime,
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedRequest {
    sent: LedgerTime,
    at: LedgerTime,
    is_probe: bool,
    /// `None` if no response came.
    head: Option<ResponseHead>,
}

impl EndedRequest {
    /// Returns how it ended, in a report that is made now.
    pub(super) fn outcome(&self, now: LedgerTime) -> Outcome {
        Outcome {
            sent_ago: now.since(self.sent),
            ended_ago: now.since(self.at),
            is_probe: self.is_probe,
            head: self.head,
        }
    }
}

impl Permits {
    /// Returns the number of a new permit.
    pub(super) fn grant(&mut self, is_probe: bool, now: LedgerTime) -> u64 {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        self.probes += u64::from(is_probe);
        let granted = Granted {
            is_probe,
            sent: None,
            ends: now.plus(TAKEN_WITHIN),
        };
        self.insert(number, granted);
        number
    }

    /// Records that the request is sent now, and lasts for `lease` at most. Returns false if the permit has
    /// lapsed.
    pub(super) fn send(&mut self, number: u64, lease: i64, now: LedgerTime) -> bool {
        let Some(granted) = self.granted.get(&number).copied() else {
            return false;
        };
        if granted.ends <= now {
            return false;
        }
        let sent = Granted {
            sent: Some(now),
            ends: now.plus(lease),
            ..granted
        };
        self.insert(number, sent);
        true
    }

    fn insert(&mut self, number: u64, granted: Granted) {
        let next_end = self
            .next_end
            .map_or(granted.ends, |end| end.min(granted.ends));
        self.next_end = Some(next_end);
        self.granted.insert(number, granted);
    }

    /// Removes a permit whose request was not sent.
    pub(super) fn give_back(&mut self, number: u64) {
        self.remove(number);
    }

    /// Removes a permit whose request has ended. If it has lapsed, the request was counted as lost, and only a 429
    /// still matters.
    pub(super) fn end(
        &mut self,
        number: u64,
        head: Option<ResponseHead>,
        now: LedgerTime,
    ) -> Option<EndedRequest> {
        let Some(granted) = self.remove(number) else {
            let refusal = head.filter(ResponseHead::is_refusal)?;
            return Some(EndedRequest {
                sent: now,
                at: now,
                is_probe: false,
                head: Some(refusal),
            });
        };
        Some(EndedRequest {
            sent: granted.sent?,
            at: now,
            is_probe: granted.is_probe,
            head,
        })
    }

    fn remove(&mut self, number: u64) -> Option<Granted> {
        let granted = self.granted.remove(&number)?;
        self.probes -= u64::from(granted.is_probe);
        Some(granted)
    }

    /// Removes the permits that have ended by themselves. Returns the requests that were sent: they count as
    /// lost.
    pub(super) fn expire(&mut self, now: LedgerTime) -> Vec<EndedRequest> {
        if self.next_end.is_none_or(|end| now < end) {
            return Vec::new();
        }
        let expired = self
            .granted
            .iter()
            .filter(|(_, granted)| granted.ends <= now);
        let expired: Vec<_> = expired.map(|(number, _)| *number).collect();
        let ended = expired
            .into_iter()
            .filter_map(|number| self.end(number, None, now));
        let ended = ended.collect();
        self.next_end = self.granted.values().map(|granted| granted.ends).min();
        ended
    }

    pub(super) fn count(&self) -> u64 {
        self.granted.len() as u64
    }

    pub(super) fn has_probe(&self) -> bool {
        self.probes > 0
    }
}
