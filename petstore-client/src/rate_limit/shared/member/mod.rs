//! A member: a process that shares a key with others through a store. It keeps a copy of the
//! record, reserves requests in advance, and reports their outcomes later. While the store is
//! unreachable, it continues with its copy. This code is pure.

mod updates;

use std::time::Duration;

use super::alone::Alone;
use super::members::Members;
use super::outcomes::Outcomes;
use super::slot::{MEMBER_LEASE, MemberId};
use crate::rate_limit::quota::clock::{LocalTime, ServiceTime};
use crate::rate_limit::quota::decision::{self, Decision, InFlight};
use crate::rate_limit::quota::ledger::Ledger;
use crate::rate_limit::quota::local::{EndedLease, Local};
use crate::rate_limit::quota::outstanding::Reservation;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::{Block, RequestOutcome, ResponseHead};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::view::{BlockReason, Quota, WaitReason};

/// A member stops using its reservations this long before the others may count it as dead.
const LEASE_MARGIN: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Default)]
pub(crate) struct Member {
    id: MemberId,
    /// The copy of the record's ledger, and the requests of this process.
    local: Local,
    /// The copy of the record's members.
    members: Members,
    state: Sharing,
    /// The reservations made in advance, and whether they are one for a probe.
    held: u64,
    holds_probe: bool,
    given_back: u64,
    /// The outcomes that the record lacks.
    outcomes: Outcomes,
    /// Whether other members wait for what this member has learned.
    is_urgent: bool,
    /// The requests since the last update, from which the rate is computed.
    used: u32,
    updated_at: LocalTime,
    /// The pause after the last update.
    pause: Duration,
    /// When waiting calls may get reservations. Until then, the rest may be reserved for other
    /// members.
    retry_at: LocalTime,
    is_reserved_for_others: bool,
    /// Decides while the store is unreachable.
    alone: Alone,
}

/// How a process shares the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Sharing {
    /// The record has not been read yet.
    #[default]
    New,
    On,
    /// The store is unreachable.
    Alone,
}

impl Member {
    pub(crate) fn new(id: MemberId, now: LocalTime, wall: ServiceTime) -> Self {
        Self {
            id,
            local: Local::new(now, wall),
            updated_at: now,
            retry_at: now,
            alone: Alone::new(id),
            ..Self::default()
        }
    }

    pub(crate) fn id(&self) -> MemberId {
        self.id
    }

    pub(crate) fn local(&self) -> &Local {
        &self.local
    }

    /// Returns the number of members that are known to be alive.
    pub(crate) fn members(&self, now: LocalTime) -> usize {
        self.members.alive(now)
    }

    /// Forgets all but the requests in flight.
    pub(crate) fn forget(&mut self, now: LocalTime, wall: ServiceTime) {
        let mut local = std::mem::take(&mut self.local);
        local.forget(now, wall);
        *self = Self {
            local,
            ..Self::new(MemberId::random(), now, wall)
        };
        let in_flight = self.local.in_flight();
        self.members.slot(self.id).set_reserved(in_flight);
    }

    /// Continues as another member in the child of a fork. The parent keeps the reservations and
    /// the requests in flight, and reports them.
    pub(crate) fn become_another(&mut self, now: LocalTime) {
        let mut local = std::mem::take(&mut self.local);
        local.forget_requests();
        *self = Self {
            local,
            members: std::mem::take(&mut self.members),
            state: self.state,
            ..Self::new(MemberId::random(), now, ServiceTime(0))
        };
        if self.state == Sharing::Alone {
            self.state = Sharing::New;
        }
    }

    /// Decides whether a request may be sent.
    pub(crate) fn decide(&self, now: LocalTime, policy: &Policy) -> Decision {
        if !self.shares_record() {
            return self.alone.decide(&self.local, now, policy);
        }
        if let Some(block) = self.ledger().refusals().blocked_at(now) {
            return Decision::WaitUntil(block);
        }
        if !policy.rate_limiting {
            return Decision::Send { probe: false };
        }
        if let Some(limit) = policy.max_in_flight
            && self.local.in_flight_of(policy) >= limit.most()
        {
            return Decision::WaitForResponse(WaitReason::Concurrency);
        }
        if self.held > 0 && self.lease_is_valid(now) {
            return Decision::Send {
                probe: self.holds_probe,
            };
        }
        match decision::decide(self.ledger(), self.in_flight(now, policy), now, policy) {
            Decision::Send { .. } => Decision::WaitForResponse(WaitReason::Members),
            wait => wait,
        }
    }

    /// Returns a block while the rest is reserved for other members. It ends at the latest time at
    /// which that can last: the reset of the minute's quota, if that is known.
    pub(crate) fn blocked_by_members(&self, now: LocalTime) -> Option<Block> {
        if !(self.shares_record() && self.is_reserved_for_others && now < self.retry_at) {
            return None;
        }
        let service_now = self.ledger().service_time(now);
        let minute = self
            .ledger()
            .windows()
            .iter()
            .filter(|window| window.reset() > service_now && window.quota() == Quota::Minute)
            .max_by_key(|window| window.reset());
        let block = match minute {
            Some(window) => Block {
                until: self.ledger().local_time(window.reset()),
                named: window.reset(),
                reason: BlockReason::Quota(window.quota()),
            },
            None => Block {
                until: self.retry_at,
                named: service_now,
                reason: BlockReason::Unknown,
            },
        };
        Some(block)
    }

    /// Reserves a request that may be sent.
    pub(crate) fn reserve(
        &mut self,
        now: LocalTime,
        is_probe: bool,
        policy: &Policy,
    ) -> Reservation {
        if self.shares_record() {
            self.held = self.held.saturating_sub(1);
            self.used += 1;
        }
        self.local.reserve(now, is_probe, policy)
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
        if self.ledger().refusals().blocked_at(now).is_some() && !reservation.is_probe() {
            self.release(reservation);
            return false;
        }
        self.local.start(reservation, now, lease)
    }

    /// Ends the reservation of a request that was not sent, or cannot have reached the service.
    pub(crate) fn release(&mut self, reservation: Reservation) {
        if self.local.release(reservation) {
            self.give_back(reservation.is_probe());
        }
    }

    /// Records a request that ended without a usable response.
    pub(crate) fn record_lost(&mut self, reservation: Reservation, now: LocalTime) {
        if let Some(ended) = self.local.end_lost(reservation, now) {
            self.record_ended(&ended);
        }
    }

    /// Records the head of a response. Returns the block if it is a 429.
    pub(crate) fn record_response(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        head: &ResponseHead,
    ) -> Option<Block> {
        let outcome = self.local.end_answered(reservation, now, head);
        self.record(&outcome)
    }

    /// Records that the last 429 was a ban.
    pub(crate) fn record_ban(&mut self) {
        self.local.record_ban();
        if let Some(block) = self.ledger().refusals().last_block() {
            self.outcomes.set_block(block);
        }
    }

    /// Records that the machine was suspended: a probe must show what has changed.
    pub(crate) fn resume(&mut self) {
        if !self.shares_record() {
            self.local.resume();
        }
    }

    /// Ends the leases that have expired. Their requests count as lost if they were sent.
    pub(crate) fn expire(&mut self, now: LocalTime) {
        for ended in self.local.end_expired(now) {
            self.record_ended(&ended);
        }
    }

    /// Returns how many requests a window leaves, including own reservations that are not used yet.
    pub(crate) fn left_in(&self, window: &Window) -> u64 {
        let in_flight = if self.shares_record() {
            self.members.reserved()
        } else {
            self.local.in_flight()
        };
        let left = decision::left_in(self.ledger(), window, in_flight, &Policy::default());
        left.saturating_add(self.held).min(window.remaining())
    }

    /// Returns whether a probe is in flight.
    pub(crate) fn is_probing(&self, now: LocalTime) -> bool {
        if self.shares_record() {
            self.members.is_probing(now)
        } else {
            self.local.is_probing(now)
        }
    }

    fn ledger(&self) -> &Ledger {
        self.local.ledger()
    }

    /// Returns the requests in flight of all members.
    fn in_flight(&self, now: LocalTime, policy: &Policy) -> InFlight {
        InFlight {
            all: self.members.reserved(),
            of_client: self.local.in_flight_of(policy),
            has_probe: self.members.is_probing(now),
            processes: self.members.processes(now),
        }
    }

    fn record(&mut self, outcome: &RequestOutcome) -> Option<Block> {
        let block = self.learn(outcome);
        self.is_urgent |= block.is_some() || outcome.is_probe();
        self.outcomes.add(outcome);
        match block {
            Some(block) => self.outcomes.set_block(block),
            None if self.ledger().refusals().last_block().is_none() => self.outcomes.end_block(),
            None => {}
        }
        block
    }

    /// Records an outcome in the copy of the record.
    fn learn(&mut self, outcome: &RequestOutcome) -> Option<Block> {
        let slot = self.members.slot(self.id);
        slot.end_requests(outcome.requests().into());
        if outcome.is_probe() {
            self.members.end_probe(self.id);
        }
        let reserved = if self.shares_record() {
            self.members.reserved()
        } else {
            self.local.in_flight()
        };
        let recorded = self.local.record(outcome, reserved);
        if recorded.has_opened_window() {
            self.members.open_window();
        }
        if self.state == Sharing::Alone {
            self.alone.observe(&self.local, outcome);
        }
        recorded.block()
    }

    fn record_ended(&mut self, ended: &EndedLease) {
        match ended {
            EndedLease::Lost(outcome) => {
                self.record(outcome);
            }
            EndedLease::Unsent { is_probe } => self.give_back(*is_probe),
        }
    }

    fn give_back(&mut self, is_probe: bool) {
        if !self.shares_record() {
            return;
        }
        if is_probe {
            self.given_back += 1;
            self.is_urgent = true;
        } else {
            self.held += 1;
        }
    }

    /// Returns whether reservations come from the shared record.
    fn shares_record(&self) -> bool {
        self.state != Sharing::Alone
    }

    /// Returns whether the other members still respect this member's reservations.
    fn lease_is_valid(&self, now: LocalTime) -> bool {
        now.since(self.updated_at) + LEASE_MARGIN < MEMBER_LEASE
    }
}
