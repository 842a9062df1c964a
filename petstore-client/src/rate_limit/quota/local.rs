//! The engine of a limiter that shares nothing: what one process knows of a key, and its requests.

use std::time::Duration;

use super::clock::{LocalTime, ServiceTime, micros};
use super::decision::{self, Decision, InFlight, Processes};
use super::ledger::{Ledger, Recorded};
use super::outstanding::{Lease, MAX_LEASE, Requests, Reservation};
use super::policy::Policy;
use super::reading::{Block, RequestOutcome, ResponseHead};
use super::window::Window;

#[derive(Debug, Clone, Default)]
pub(crate) struct Local {
    ledger: Ledger,
    requests: Requests,
    /// The number of 429s.
    throttled: u64,
}

impl Local {
    pub(crate) fn new(now: LocalTime, wall: ServiceTime) -> Self {
        Self {
            ledger: Ledger::new(now, wall),
            ..Self::default()
        }
    }

    /// Forgets all but the requests in flight.
    pub(crate) fn forget(&mut self, now: LocalTime, wall: ServiceTime) {
        self.ledger = Ledger::new(now, wall);
        self.requests.forget_probe();
        self.throttled = 0;
    }

    /// Decides whether a request may be sent.
    pub(crate) fn decide(&self, now: LocalTime, policy: &Policy) -> Decision {
        self.decide_among(Processes::One, now, policy)
    }

    /// Reserves a request. Call it only after [`decide`](Self::decide) has allowed one.
    pub(crate) fn reserve(
        &mut self,
        now: LocalTime,
        is_probe: bool,
        policy: &Policy,
    ) -> Reservation {
        self.requests
            .reserve(now, is_probe, policy.limited_client())
    }

    /// Records that the request is sent now and lasts no longer than `lease`. Returns false if it
    /// must not be sent: the reservation has lapsed, or a 429 has come meanwhile. The reservation
    /// is then over.
    pub(crate) fn start(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        lease: Duration,
    ) -> bool {
        if self.ledger.refusals().blocked_at(now).is_some() && !reservation.is_probe() {
            self.release(reservation);
            return false;
        }
        self.requests.start(reservation, now, lease)
    }

    /// Ends the reservation of a request that was not sent, or cannot have reached the service.
    /// Returns false if the reservation had lapsed.
    pub(crate) fn release(&mut self, reservation: Reservation) -> bool {
        self.requests.end(reservation).is_some()
    }

    /// Records a request that ended without a usable response.
    pub(crate) fn record_lost(&mut self, reservation: Reservation, now: LocalTime) {
        let ended = self.end_lost(reservation, now);
        self.record_ended(ended);
    }

    /// Records the head of a response. Returns the block if it is a 429.
    pub(crate) fn record_response(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        head: &ResponseHead,
    ) -> Option<Block> {
        let outcome = self.end_answered(reservation, now, head);
        self.record(&outcome, self.requests.count()).block()
    }

    /// Records that the last 429 was a ban.
    pub(crate) fn record_ban(&mut self) {
        self.ledger.refusals_mut().record_ban();
    }

    /// Records that the machine was suspended: a probe must show what has changed.
    pub(crate) fn resume(&mut self) {
        self.ledger.refusals_mut().doubt();
    }

    /// Ends the leases that have expired. Their requests count as lost if they were sent.
    pub(crate) fn expire(&mut self, now: LocalTime) {
        let ended = self.end_expired(now);
        self.record_ended(ended);
    }

    fn record_ended(&mut self, ended: impl IntoIterator<Item = EndedLease>) {
        for lease in ended {
            if let EndedLease::Lost(outcome) = lease {
                let _ = self.record(&outcome, self.requests.count());
            }
        }
    }

    /// Returns the number of requests that are reserved or in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.requests.count()
    }

    /// Returns the number of requests in flight of a client that limits them.
    pub(crate) fn in_flight_of(&self, policy: &Policy) -> u64 {
        match policy.limited_client() {
            Some(client) => self.requests.count_of(client),
            None => 0,
        }
    }

    pub(crate) fn unresolved(&self) -> u64 {
        self.ledger.lost()
    }

    pub(crate) fn throttled(&self) -> u64 {
        self.throttled
    }

    /// Returns how many requests a window leaves.
    pub(crate) fn left_in(&self, window: &Window) -> u64 {
        decision::left_in(
            &self.ledger,
            window,
            self.requests.count(),
            &Policy::default(),
        )
    }

    /// Returns whether a probe is in flight.
    pub(crate) fn is_probing(&self, now: LocalTime) -> bool {
        self.requests.probe_end().is_some_and(|end| now < end)
    }

    /// Returns when everything that is known has expired, if all windows end as announced.
    pub(crate) fn idle_from(&self) -> LocalTime {
        self.ledger.idle_from().max(self.requests.last_end())
    }

    /// Returns the end of the first lease, or an earlier time.
    pub(crate) fn first_lease_end(&self) -> Option<LocalTime> {
        self.requests.first_end()
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// What becomes of a reservation that ends without a response.
pub(crate) enum EndedLease {
    /// The request was sent: the service may have counted it.
    Lost(RequestOutcome),
    /// The request was not sent. `is_probe` says whether it would have been a probe.
    Unsent { is_probe: bool },
}

/// The single steps of the methods above, for the engine of a member, which shares its ledger.
impl Local {
    /// Decides whether a request may be sent, if other processes may send as well.
    pub(crate) fn decide_among(
        &self,
        processes: Processes,
        now: LocalTime,
        policy: &Policy,
    ) -> Decision {
        let in_flight = InFlight {
            all: self.requests.count(),
            of_client: self.in_flight_of(policy),
            has_probe: self.is_probing(now),
            processes,
        };
        decision::decide(&self.ledger, in_flight, now, policy)
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Records an outcome. `reserved` is the number of other requests that are reserved or in
    /// flight.
    pub(crate) fn record(&mut self, outcome: &RequestOutcome, reserved: u64) -> Recorded {
        let recorded = self.ledger.record(outcome, reserved);
        self.throttled += u64::from(recorded.block().is_some());
        recorded
    }

    /// Ends an answered request. Returns its outcome.
    pub(crate) fn end_answered(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        head: &ResponseHead,
    ) -> RequestOutcome {
        let lease = self.requests.end(reservation);
        let requests = u32::from(lease.is_some());
        let sent = lease
            .and_then(|lease| lease.sent())
            .unwrap_or(now.moved(-micros(MAX_LEASE)));
        RequestOutcome::answered(sent, now, reservation.is_probe(), requests, *head)
    }

    /// Ends a request without a response. Returns `None` if its lease had ended before: then it
    /// already counts as lost.
    pub(crate) fn end_lost(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
    ) -> Option<EndedLease> {
        let lease = self.requests.end(reservation)?;
        Some(ended(&lease, now))
    }

    /// Ends the requests whose leases are over.
    pub(crate) fn end_expired(&mut self, now: LocalTime) -> Vec<EndedLease> {
        let expired = self.requests.expire(now);
        expired.iter().map(|lease| ended(lease, now)).collect()
    }

    /// Forgets the requests, because another process reports them.
    pub(crate) fn forget_requests(&mut self) {
        self.requests.forget_all();
    }

    /// Moves the times of requests to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&mut self, by: i64) {
        self.requests.shift(by);
    }
}

fn ended(lease: &Lease, now: LocalTime) -> EndedLease {
    match lease.sent() {
        Some(sent) => EndedLease::Lost(RequestOutcome::lost(sent.min(now), now, lease.is_probe())),
        None => EndedLease::Unsent {
            is_probe: lease.is_probe(),
        },
    }
}
