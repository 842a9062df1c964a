//! Requests that ended without a usable response. The service may have counted them.

use serde::{Deserialize, Serialize};

use super::instant::{LedgerTime, SECOND};

/// How long a request may take to reach the service.
const MAX_TRANSIT: i64 = SECOND;
/// Requests that were sent within this time are kept together.
const GROUP: i64 = SECOND / 4;
const MAX_GROUPS: usize = 16;

/// The lost requests that no response has settled yet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LostRequests(Vec<Group>);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Group {
    requests: u64,
    /// When the last of them was sent.
    sent: LedgerTime,
}

impl LostRequests {
    pub(crate) fn count(&self) -> u64 {
        let requests = self.0.iter().map(|group| group.requests);
        requests.fold(0, u64::saturating_add)
    }

    /// Counts those that were sent since an instant.
    pub(crate) fn count_since(&self, at: LedgerTime) -> u64 {
        let groups = self.0.iter().filter(|group| group.sent >= at);
        groups.fold(0, |sum, group| sum.saturating_add(group.requests))
    }

    pub(crate) fn add(&mut self, requests: u64, sent: LedgerTime) {
        if requests == 0 {
            return;
        }
        let is_full = self.0.len() >= MAX_GROUPS;
        match self.0.last_mut() {
            Some(last) if is_full || sent.since(last.sent) < GROUP => {
                last.requests = last.requests.saturating_add(requests);
                last.sent = last.sent.max(sent);
            }
            _ => self.0.push(Group { requests, sent }),
        }
    }

    /// Removes the requests that must have arrived before one that was sent at an instant, and returns their number.
    pub(crate) fn settle(&mut self, sent: LedgerTime) -> u64 {
        let before = self.count();
        self.0.retain(|group| group.sent.plus(MAX_TRANSIT) > sent);
        before - self.count()
    }

    /// Returns whether one may still be on its way to the service.
    pub(crate) fn may_arrive(&self, now: LedgerTime) -> bool {
        self.0
            .iter()
            .any(|group| now < group.sent.plus(MAX_TRANSIT))
    }

    #[cfg(any(feature = "file-store", feature = "redis"))]
    pub(crate) fn is_plausible(&self) -> bool {
        self.0.len() <= MAX_GROUPS
    }
}
