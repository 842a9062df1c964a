//! Requests whose response has not come: in flight, or lost.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::{LocalTime, SECOND, micros};

/// A reservation that is not used lapses: the task that holds it is not run.
const UNUSED_LEASE: Duration = Duration::from_secs(1);
/// No request lasts longer, whatever its time limit.
pub(super) const MAX_LEASE: Duration = Duration::from_secs(600);
/// No count in a record is as large, so that sums of them cannot overflow.
pub(super) const MAX_COUNT: u64 = 1 << 48;
/// How long a request may be on its way to the service.
const MAX_TRANSIT: Duration = Duration::from_secs(1);
/// Lost requests are kept in so many groups at most.
const MAX_LOST_GROUPS: usize = 16;
/// Requests that are lost within this time are one group.
const LOST_GROUP: u64 = SECOND.unsigned_abs() / 4;

/// The right to send one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) struct Reservation {
    id: u64,
    pub(super) probe: bool,
}

/// A reserved request. When the lease ends, the task that holds it is taken to be dead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    pub(super) end: LocalTime,
    pub(super) sent: Option<LocalTime>,
    pub(super) probe: bool,
}

/// This process's requests: reserved, and in flight.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    last_id: u64,
    leases: BTreeMap<u64, Lease>,
    /// No lease ends before.
    first_end: Option<LocalTime>,
}

impl Requests {
    pub(super) fn reserve(&mut self, now: LocalTime, probe: bool) -> Reservation {
        self.last_id += 1;
        let end = now.plus(UNUSED_LEASE);
        self.leases.insert(self.last_id, Lease { end, sent: None, probe });
        self.first_end = Some(self.first_end.map_or(end, |first| first.min(end)));
        Reservation { id: self.last_id, probe }
    }

    /// Records that the request is sent now and lasts no longer than `lease`. Returns false where
    /// the reservation has lapsed.
    pub(super) fn start(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        lease: Duration,
    ) -> bool {
        let Some(entry) = self.leases.get_mut(&reservation.id) else { return false };
        (entry.sent, entry.end) = (Some(now), now.plus(lease.min(MAX_LEASE)));
        true
    }

    /// Ends a request. Returns `None` where its lease had ended before.
    pub(super) fn end(&mut self, reservation: Reservation) -> Option<Lease> {
        self.leases.remove(&reservation.id)
    }

    /// Removes and returns the leases that have ended.
    pub(super) fn expire(&mut self, now: LocalTime) -> Vec<Lease> {
        if self.first_end.is_none_or(|first| now < first) {
            return Vec::new();
        }
        let mut ended = Vec::new();
        self.leases.retain(|_, lease| {
            let is_over = lease.end <= now;
            ended.extend(is_over.then_some(*lease));
            !is_over
        });
        self.first_end = self.leases.values().map(|lease| lease.end).min();
        ended
    }

    /// Returns the lease of the probe, if there is one.
    pub(super) fn probe(&self) -> Option<&Lease> {
        self.leases.values().find(|lease| lease.probe)
    }

    pub(super) fn count(&self) -> u64 {
        self.leases.len() as u64
    }

    pub(super) fn first_end(&self) -> Option<LocalTime> {
        self.first_end
    }

    pub(super) fn last_end(&self) -> LocalTime {
        self.leases.values().map(|lease| lease.end).max().unwrap_or_default()
    }

    /// Moves all to a clock that is so many microseconds ahead.
    pub(super) fn shift(&mut self, by: i64) {
        self.first_end = self.first_end.map(|end| end.moved(by));
        for lease in self.leases.values_mut() {
            lease.end = lease.end.moved(by);
            lease.sent = lease.sent.map(|sent| sent.moved(by));
        }
    }
}

/// Requests that ended without a usable response. The service may have counted them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct LostRequests(Vec<LostGroup>);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct LostGroup {
    count: u32,
    /// When the last of them was sent.
    sent: LocalTime,
    /// The response to a request that is sent from then on settles them: none of them is on its way
    /// any more.
    settled_from: LocalTime,
}

impl LostRequests {
    pub(super) fn add(&mut self, count: u32, sent: LocalTime, now: LocalTime) {
        let settled_from = now.max(sent.plus(MAX_TRANSIT));
        let near =
            |lost: &&mut LostGroup| lost.settled_from.0.abs_diff(settled_from.0) <= LOST_GROUP;
        let group = if self.0.len() < MAX_LOST_GROUPS {
            self.0.iter_mut().find(near)
        } else {
            self.0.last_mut()
        };
        match group {
            Some(lost) => {
                lost.count = lost.count.saturating_add(count);
                lost.sent = lost.sent.max(sent);
                lost.settled_from = lost.settled_from.max(settled_from);
            }
            None => self.0.push(LostGroup { count, sent, settled_from }),
        }
    }

    /// Removes the requests that were not on their way any more when the request was sent that is
    /// answered now: the service's figure holds them, if it ever will. Returns how many there were,
    /// in groups, and when they were sent.
    pub(super) fn settle(&mut self, sent: LocalTime) -> impl Iterator<Item = (u32, LocalTime)> {
        let settled = self.0.extract_if(.., move |lost| {
            let after = sent.0.saturating_sub(lost.settled_from.0);
            // What lies far in the future was recorded by a clock that was wrong.
            after >= 0 || after < -micros(MAX_LEASE)
        });
        settled.map(|lost| (lost.count, lost.sent))
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|lost| u64::from(lost.count)).sum()
    }

    /// Returns how many were sent after an instant.
    pub(super) fn since(&self, at: LocalTime) -> u64 {
        self.0.iter().filter(|lost| lost.sent >= at).map(|lost| u64::from(lost.count)).sum()
    }

    /// Returns whether one of them may still be on its way.
    pub(super) fn is_on_the_way(&self, now: LocalTime) -> bool {
        self.0.iter().any(|lost| now < lost.settled_from)
    }
}
