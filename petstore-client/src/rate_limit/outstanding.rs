//! Requests whose response has not come: reserved, in flight, or lost.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::{LocalTime, SECOND, micros};

/// A reservation that is not used lapses: the task that holds it is not run.
const UNUSED_LEASE: Duration = Duration::from_secs(1);
/// The ends of leases are rounded up to a tenth of a second, of longer ones to a second.
const SHORT_LEASE: Duration = Duration::from_secs(8);
/// No request lasts longer, whatever its time limit.
const MAX_LEASE: Duration = Duration::from_secs(600);
/// How long a request may be on its way to the service.
const MAX_TRANSIT: Duration = Duration::from_secs(1);
/// Lost requests are kept in so many groups at most.
const MAX_LOST_GROUPS: usize = 16;

/// The right to send one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) struct Reservation {
    /// The number of requests reserved so far, this one included.
    pub(super) number: u64,
    lease_end: LocalTime,
    pub(super) sent: Option<LocalTime>,
    pub(super) probe: bool,
}

/// Reservations whose leases end together.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Lease {
    end: LocalTime,
    sent: bool,
    count: u32,
    /// When the last of them was sent, or reserved.
    at: LocalTime,
}

/// Requests that ended without a usable response.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Lost {
    count: u32,
    /// When the last of them was sent.
    at: LocalTime,
    /// The response to a request that is sent from then on settles them: none of them is on its way
    /// any more.
    settled_from: LocalTime,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Probe {
    number: u64,
    until: LocalTime,
}

/// The requests that may be counted by the service and are not in its figures.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outstanding {
    /// How many were reserved so far.
    pub(super) reserved: u64,
    leases: Vec<Lease>,
    probe: Option<Probe>,
    lost: Vec<Lost>,
}

impl Outstanding {
    /// Reserves a request; the ledger has decided that it may be sent.
    pub(crate) fn reserve(&mut self, now: LocalTime, probe: bool) -> Reservation {
        self.reserved += 1;
        let lease_end = self.lease(now, UNUSED_LEASE, false);
        if probe {
            self.probe = Some(Probe { number: self.reserved, until: lease_end });
        }
        Reservation { number: self.reserved, lease_end, sent: None, probe }
    }

    /// Records that the request is sent now and lasts no longer than `lease`. Returns false where
    /// the reservation has lapsed.
    pub(crate) fn start(
        &mut self,
        reservation: &mut Reservation,
        now: LocalTime,
        lease: Duration,
    ) -> bool {
        if !self.end_lease(reservation) {
            return false;
        }
        reservation.sent = Some(now);
        reservation.lease_end = self.lease(now, lease.min(MAX_LEASE), true);
        if let Some(probe) = self.probe.as_mut().filter(|probe| probe.number == reservation.number)
        {
            probe.until = reservation.lease_end;
        }
        true
    }

    /// Gives a reservation back whose request was not sent, or cannot have reached the service.
    pub(crate) fn release(&mut self, reservation: Reservation) {
        self.end(&reservation);
    }

    /// Records a request that ended without a usable response.
    pub(crate) fn record_lost(&mut self, reservation: Reservation, now: LocalTime) {
        // Without a lease it counts as lost already.
        let had_lease = self.end(&reservation);
        if let Some(sent) = reservation.sent.filter(|_| had_lease) {
            self.add_lost(1, sent, now);
        }
    }

    /// Ends leases that are over: what was sent counts as lost.
    pub(crate) fn expire(&mut self, now: LocalTime) {
        // A lease that ends far in the future was given by a clock that was wrong.
        let last = now.plus(MAX_LEASE + 2 * UNUSED_LEASE);
        let is_live = |lease: &Lease| now < lease.end && lease.end <= last;
        if self.leases.iter().all(is_live) {
            return;
        }
        let (live, over): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.leases).into_iter().partition(is_live);
        self.leases = live;
        for lease in over.into_iter().filter(|lease| lease.sent) {
            self.add_lost(lease.count, lease.at.min(now), now);
        }
    }

    pub(crate) fn first_lease_end(&self) -> Option<LocalTime> {
        self.leases.iter().map(|lease| lease.end).min()
    }

    /// Returns how many requests are in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.leases.iter().map(|lease| lease.count).sum()
    }

    /// Returns how many requests are unresolved.
    pub(crate) fn unresolved(&self) -> u32 {
        self.lost.iter().map(|lost| lost.count).sum()
    }

    /// Returns how many requests may be counted by the service and are not in its figures.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.in_flight()) + u64::from(self.unresolved())
    }

    /// Returns how many unresolved requests were sent after an instant.
    pub(super) fn lost_since(&self, at: LocalTime) -> u64 {
        let recent = self.lost.iter().filter(|lost| lost.at >= at);
        recent.map(|lost| u64::from(lost.count)).sum()
    }

    /// Returns whether unresolved requests will be settled soon: by the response to a request in
    /// flight, or to one that is sent when they cannot be on their way any more.
    pub(super) fn is_settling(&self, now: LocalTime) -> bool {
        let on_the_way = |lost: &Lost| now < lost.settled_from;
        !self.lost.is_empty() && (self.in_flight() > 0 || self.lost.iter().any(on_the_way))
    }

    /// Returns whether a request is in flight whose response tells how many may follow.
    pub(super) fn is_probing(&self, now: LocalTime) -> bool {
        self.probe.is_some_and(|probe| now < probe.until)
    }

    /// Returns when the last lease is over.
    pub(super) fn last_lease_end(&self) -> Option<LocalTime> {
        self.leases.iter().map(|lease| lease.end).max()
    }

    /// Moves all instants to a local clock that shows `by` more.
    pub(super) fn move_local_clock(&mut self, by: i64) {
        let leases = self.leases.iter_mut().flat_map(|lease| [&mut lease.at, &mut lease.end]);
        let lost = self.lost.iter_mut().flat_map(|lost| [&mut lost.at, &mut lost.settled_from]);
        let probe = self.probe.iter_mut().map(|probe| &mut probe.until);
        leases.chain(lost).chain(probe).for_each(|at| *at = at.moved(by));
    }

    /// Resolves the lost requests that were not on their way any more when the request was sent
    /// that is answered now: the service's figure holds them, if it ever will. Returns how many
    /// there were, in groups, and when they were sent.
    pub(super) fn settle(&mut self, sent: LocalTime) -> impl Iterator<Item = (u32, LocalTime)> {
        let settled = self.lost.extract_if(.., move |lost| {
            let after = sent.0.saturating_sub(lost.settled_from.0);
            // What lies far in the future was recorded by a clock that was wrong.
            after >= 0 || after < -micros(MAX_LEASE)
        });
        settled.map(|lost| (lost.count, lost.at))
    }

    /// Ends a request, also where its lease is over. Returns whether it was not.
    pub(super) fn end(&mut self, reservation: &Reservation) -> bool {
        self.probe = self.probe.filter(|probe| probe.number != reservation.number);
        self.end_lease(reservation)
    }

    fn lease(&mut self, now: LocalTime, length: Duration, sent: bool) -> LocalTime {
        let step = if length <= SHORT_LEASE { SECOND / 10 } else { SECOND };
        let end = LocalTime((now.plus(length).0.div_euclid(step) + 1).saturating_mul(step));
        match self.leases.iter_mut().find(|lease| lease.is_about(end, sent)) {
            Some(lease) => {
                (lease.count, lease.at) = (lease.count + 1, lease.at.max(now));
                lease.end
            }
            None => {
                self.leases.push(Lease { end, sent, count: 1, at: now });
                end
            }
        }
    }

    fn end_lease(&mut self, reservation: &Reservation) -> bool {
        let Reservation { lease_end, sent, .. } = *reservation;
        let mut leases = self.leases.iter();
        let Some(place) = leases.position(|lease| lease.is_about(lease_end, sent.is_some())) else {
            return false;
        };
        self.leases[place].count -= 1;
        if self.leases[place].count == 0 {
            self.leases.swap_remove(place);
        }
        true
    }

    fn add_lost(&mut self, count: u32, at: LocalTime, now: LocalTime) {
        const GROUP: u64 = SECOND.unsigned_abs() / 4;
        let settled_from = now.max(at.plus(MAX_TRANSIT));
        let near = |lost: &&mut Lost| lost.settled_from.0.abs_diff(settled_from.0) <= GROUP;
        let group = if self.lost.len() < MAX_LOST_GROUPS {
            self.lost.iter_mut().find(near)
        } else {
            self.lost.last_mut()
        };
        match group {
            Some(lost) => {
                lost.count += count;
                lost.at = lost.at.max(at);
                lost.settled_from = lost.settled_from.max(settled_from);
            }
            None => self.lost.push(Lost { count, at, settled_from }),
        }
    }
}

impl Lease {
    /// Returns whether this is the group of a lease. Other processes' clocks may differ a little.
    fn is_about(&self, end: LocalTime, sent: bool) -> bool {
        self.sent == sent && self.end.0.abs_diff(end.0) < SECOND.unsigned_abs() / 20
    }
}
