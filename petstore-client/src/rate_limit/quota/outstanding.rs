//! Outstanding requests, which have no response yet: in flight, or lost.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use slab::Slab;

use super::clock::{LocalTime, SECOND, micros};
use super::policy::ClientId;

/// An unused reservation lapses after this time, because the task that holds it is not being
/// polled.
const UNUSED_LEASE: Duration = Duration::from_secs(1);
/// The longest lease of a request.
pub(crate) const MAX_LEASE: Duration = Duration::from_secs(600);
/// The bound of all counts in a record, so that their sums cannot overflow.
pub(crate) const MAX_COUNT: u64 = 1 << 48;
/// How long a request may take to reach the service.
const MAX_TRANSIT: Duration = Duration::from_secs(1);
/// The maximum number of groups of lost requests.
const MAX_LOST_GROUPS: usize = 16;
/// Requests lost within this time form one group.
const LOST_GROUP: u64 = SECOND.unsigned_abs() / 4;

/// The right to send one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) struct Reservation {
    /// The slot of its lease. Slots are reused, so `id` identifies the lease.
    key: usize,
    id: u64,
    is_probe: bool,
}

impl Reservation {
    pub(crate) fn is_probe(self) -> bool {
        self.is_probe
    }
}

/// A reservation with an end. At its end, the task that holds it counts as dead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    id: u64,
    end: LocalTime,
    sent: Option<LocalTime>,
    is_probe: bool,
    /// The client, if it limits its requests in flight.
    client: Option<ClientId>,
}

impl Lease {
    /// Returns when the request was sent, if it was.
    pub(crate) fn sent(&self) -> Option<LocalTime> {
        self.sent
    }

    pub(crate) fn is_probe(&self) -> bool {
        self.is_probe
    }
}

/// This process's reserved requests and requests in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    last_id: u64,
    leases: Slab<Lease>,
    /// The end of the first lease, or an earlier time: it is not moved when a lease is extended or
    /// removed.
    first_end: Option<LocalTime>,
    /// The last probe that is in flight, and when its lease ends.
    probe: Option<(u64, LocalTime)>,
    /// The number of requests in flight of each client that has a limit for them.
    limited: HashMap<ClientId, u64>,
}

impl Requests {
    pub(crate) fn reserve(
        &mut self,
        now: LocalTime,
        is_probe: bool,
        client: Option<ClientId>,
    ) -> Reservation {
        self.last_id += 1;
        let end = now.plus(UNUSED_LEASE);
        self.first_end = Some(self.first_end.map_or(end, |first| first.min(end)));
        let id = self.last_id;
        if is_probe {
            self.probe = Some((id, end));
        }
        if let Some(client) = client {
            *self.limited.entry(client).or_default() += 1;
        }
        let key = self.leases.insert(Lease {
            id,
            end,
            sent: None,
            is_probe,
            client,
        });
        Reservation { key, id, is_probe }
    }

    /// Records that the request is sent now and lasts no longer than `lease`. Returns false if the
    /// reservation has lapsed.
    pub(crate) fn start(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        lease: Duration,
    ) -> bool {
        let end = now.plus(lease.min(MAX_LEASE));
        let Some(found) = self.find(reservation) else {
            return false;
        };
        (found.sent, found.end) = (Some(now), end);
        if let Some((id, probe_end)) = &mut self.probe
            && *id == reservation.id
        {
            *probe_end = end;
        }
        true
    }

    /// Ends a request. Returns `None` if its lease had already ended.
    pub(crate) fn end(&mut self, reservation: Reservation) -> Option<Lease> {
        self.find(reservation)?;
        let lease = self.leases.try_remove(reservation.key)?;
        self.forget(&lease);
        Some(lease)
    }

    fn find(&mut self, Reservation { key, id, .. }: Reservation) -> Option<&mut Lease> {
        self.leases.get_mut(key).filter(|lease| lease.id == id)
    }

    /// Subtracts a removed lease from the counts.
    fn forget(&mut self, lease: &Lease) {
        if self.probe.is_some_and(|(id, _)| id == lease.id) {
            self.probe = None;
        }
        let Some(client) = lease.client else { return };
        if let Some(count) = self.limited.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.limited.remove(&client);
            }
        }
    }

    /// Removes and returns the leases that have ended.
    pub(crate) fn expire(&mut self, now: LocalTime) -> Vec<Lease> {
        if self.first_end.is_none_or(|first| now < first) {
            return Vec::new();
        }
        let mut ended = Vec::new();
        self.leases.retain(|_, lease| {
            let is_over = lease.end <= now;
            ended.extend(is_over.then_some(*lease));
            !is_over
        });
        self.first_end = self.leases.iter().map(|(_, lease)| lease.end).min();
        for lease in &ended {
            self.forget(lease);
        }
        ended
    }

    /// Returns when the lease of the probe ends, if one is in flight.
    pub(crate) fn probe_end(&self) -> Option<LocalTime> {
        self.probe.map(|(_, end)| end)
    }

    /// Forgets all requests. If somebody still holds a reservation, ending it has no effect.
    pub(crate) fn forget_all(&mut self) {
        *self = Self {
            last_id: self.last_id,
            ..Self::default()
        };
    }

    /// Forgets the probe in flight, so that another one may go.
    pub(crate) fn forget_probe(&mut self) {
        self.probe = None;
    }

    pub(crate) fn count(&self) -> u64 {
        self.leases.len() as u64
    }

    /// Returns how many requests are in flight of a client that has a limit for them.
    pub(crate) fn count_of(&self, client: ClientId) -> u64 {
        self.limited.get(&client).copied().unwrap_or(0)
    }

    pub(crate) fn first_end(&self) -> Option<LocalTime> {
        self.first_end
    }

    pub(crate) fn last_end(&self) -> LocalTime {
        self.leases
            .iter()
            .map(|(_, lease)| lease.end)
            .max()
            .unwrap_or_default()
    }

    /// Moves all times to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&mut self, by: i64) {
        self.first_end = self.first_end.map(|end| end.moved(by));
        self.probe = self.probe.map(|(id, end)| (id, end.moved(by)));
        for (_, lease) in &mut self.leases {
            lease.end = lease.end.moved(by);
            lease.sent = lease.sent.map(|sent| sent.moved(by));
        }
    }
}

/// Requests that ended without a usable response. The service may have counted them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LostRequests(Vec<LostGroup>);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct LostGroup {
    count: u32,
    /// When the last of them was sent.
    sent: LocalTime,
    /// All of them have arrived by then. So the response to a request sent from then on settles
    /// them.
    settled_from: LocalTime,
}

impl LostRequests {
    pub(crate) fn add(&mut self, count: u32, sent: LocalTime, now: LocalTime) {
        let new = LostGroup {
            count,
            sent,
            settled_from: now.max(sent.plus(MAX_TRANSIT)),
        };
        self.join(new, u32::saturating_add);
    }

    /// Takes over the requests that another copy has lost, if it has lost more. If this copy has
    /// settled them, the next response settles them again.
    pub(crate) fn merge(&mut self, other: &Self) {
        for group in &other.0 {
            self.join(*group, u32::max);
        }
    }

    /// Adds a group to the one of the same time, if there is one. `total` returns the number of
    /// their requests.
    fn join(&mut self, new: LostGroup, total: fn(u32, u32) -> u32) {
        let near =
            |lost: &&mut LostGroup| lost.settled_from.0.abs_diff(new.settled_from.0) <= LOST_GROUP;
        let group = if self.0.len() < MAX_LOST_GROUPS {
            self.0.iter_mut().find(near)
        } else {
            self.0.last_mut()
        };
        match group {
            Some(lost) => {
                lost.count = total(lost.count, new.count);
                lost.sent = lost.sent.max(new.sent);
                lost.settled_from = lost.settled_from.max(new.settled_from);
            }
            None => self.0.push(new),
        }
    }

    /// Removes the requests that must have arrived before the answered request was sent. If the
    /// service counted them, its reading includes them. Returns groups of them: their number, and
    /// when they were sent.
    pub(crate) fn settle(&mut self, sent: LocalTime) -> impl Iterator<Item = (u32, LocalTime)> {
        let settled = self.0.extract_if(.., move |lost| {
            let after = sent.0.saturating_sub(lost.settled_from.0);
            // Such a time, far in the future, was recorded while the clock was wrong.
            after >= 0 || after < -micros(MAX_LEASE)
        });
        settled.map(|lost| (lost.count, lost.sent))
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|lost| u64::from(lost.count)).sum()
    }

    /// Returns the number of requests that were sent after an instant.
    pub(crate) fn since(&self, at: LocalTime) -> u64 {
        self.0
            .iter()
            .filter(|lost| lost.sent >= at)
            .map(|lost| u64::from(lost.count))
            .sum()
    }

    /// Returns whether a request may still be on its way.
    pub(crate) fn is_on_the_way(&self, now: LocalTime) -> bool {
        self.0.iter().any(|lost| now < lost.settled_from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> LocalTime {
        LocalTime(milliseconds * 1_000)
    }

    #[test]
    fn a_reservation_lapses_after_a_second() {
        let mut requests = Requests::default();
        let (unused, sent) = (
            requests.reserve(at(0), false, None),
            requests.reserve(at(0), true, None),
        );
        assert!(requests.start(sent, at(500), Duration::from_secs(3_600)));
        assert_eq!(
            (requests.first_end(), requests.last_end()),
            (Some(at(1_000)), at(600_500))
        );
        requests.shift(SECOND);
        assert!(requests.expire(at(1_999)).is_empty());
        assert_eq!(requests.expire(at(2_000)).len(), 1);
        assert!(requests.end(unused).is_none());
        assert_eq!(requests.first_end(), Some(at(601_500)));
        let lease = requests.end(sent).unwrap();
        assert_eq!((lease.end, lease.sent), (at(601_500), Some(at(1_500))));
    }

    #[test]
    fn the_probe_and_requests_are_counted_until_they_end() {
        let (client, mut requests) = (ClientId::new(), Requests::default());
        let probe = requests.reserve(at(0), true, Some(client));
        let other = requests.reserve(at(0), false, Some(client));
        let _unlimited = requests.reserve(at(0), false, None);
        assert_eq!(requests.probe_end(), Some(at(1_000)));
        assert!(requests.start(probe, at(0), Duration::from_secs(5)));
        assert_eq!(requests.probe_end(), Some(at(5_000)));
        assert_eq!((requests.count(), requests.count_of(client)), (3, 2));
        assert!(requests.end(probe).is_some() && requests.end(probe).is_none());
        assert_eq!((requests.probe_end(), requests.count_of(client)), (None, 1));
        assert_eq!(requests.expire(at(1_000)).len(), 2);
        assert!(requests.end(other).is_none());
        assert_eq!((requests.count(), requests.count_of(client)), (0, 0));
        assert!(requests.limited.is_empty());
    }

    #[test]
    fn requests_lost_within_a_quarter_second_are_a_group() {
        let mut lost = LostRequests::default();
        for (now, groups) in [(1_000, 1), (1_250, 1), (1_501, 2)] {
            lost.add(2, at(now - 1_000), at(now));
            assert_eq!(lost.0.len(), groups, "{now}");
        }
        for second in 2..40 {
            lost.add(1, at(second * 1_000 - 500), at(second * 1_000));
        }
        assert_eq!((lost.0.len(), lost.count()), (16, 6 + 38));
        assert_eq!((lost.since(at(38_500)), lost.since(at(38_501))), (25, 0));
        let mut settle = |sent| lost.settle(at(sent)).collect::<Vec<_>>();
        assert_eq!(settle(1_249), []);
        assert_eq!(settle(1_250), [(4, at(250))]);
        assert_eq!(settle(38_999).len(), 14);
        assert_eq!(settle(39_499), []);
        assert_eq!(settle(39_500), [(25, at(38_500))]);
    }

    #[test]
    fn of_two_copies_the_one_that_lost_more_decides() {
        let lost = |groups: &[(u32, i64)]| {
            let mut lost = LostRequests::default();
            for (count, now) in groups {
                lost.add(*count, at(now - 1_000), at(*now));
            }
            lost
        };
        for (one, other, count) in [
            (&[][..], &[(2, 1_000)][..], 2),
            (&[(3, 1_000)], &[(2, 1_000)], 3),
            (&[(2, 1_000)], &[(3, 1_200)], 3),
            (&[(2, 1_000)], &[(3, 1_300)], 5),
        ] {
            for [one, other] in [[one, other], [other, one]] {
                let mut merged = lost(one);
                merged.merge(&lost(other));
                merged.merge(&lost(other));
                assert_eq!(merged.count(), count, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_lost_request_may_be_on_its_way_for_a_second() {
        let mut lost = LostRequests::default();
        lost.add(1, at(0), at(500));
        assert!(lost.is_on_the_way(at(999)) && !lost.is_on_the_way(at(1_000)));
        assert_eq!(lost.settle(at(999)).count(), 0);
        assert_eq!(lost.settle(at(1_000)).count(), 1);
        // A time further ahead than the longest lease was recorded while the clock was wrong.
        lost.add(1, at(0), at(601_000));
        assert_eq!(lost.settle(at(1_000)).count(), 0);
        assert_eq!(lost.settle(at(999)).count(), 1);
    }
}
