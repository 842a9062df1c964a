//! The limiter's part of one process: its requests in flight, and its copy of the ledger.
//!
//! Without a store, the process owns the ledger and decides by it. With a store, the ledger is a record
//! that all members update: this member keeps a copy, reserves requests in advance and reports their
//! outcomes later. While the store is unreachable, it continues with its copy. This code is pure.

use std::time::Duration;

use super::division::{Granted, MEMBER_LEASE, Report};
use super::slot::MemberId;
use crate::rate_limit::quota::clock::{LocalTime, ServiceTime, micros};
use crate::rate_limit::quota::decision::{Decision, Policy};
use crate::rate_limit::quota::ledger::{Ledger, Probe};
use crate::rate_limit::quota::outstanding::{Lease, MAX_LEASE, Requests, Reservation};
use crate::rate_limit::quota::reading::{Block, Outcome, ResponseHead};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::view::{BlockReason, Quota, WaitReason};

/// Outcomes are reported when this many have gathered, but not more often than the interval, or when
/// the member has held reservations for `MAX_UPDATE_INTERVAL`.
const MAX_UNREPORTED: u32 = 16;
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(100);
const MIN_UPDATE_INTERVAL_BESIDE_OTHERS: Duration = Duration::from_millis(10);
/// How soon waiting calls make the member update the record after its own requests were answered.
const FREED_INTERVAL: Duration = Duration::from_millis(50);
const MIN_UPDATE_PAUSE: Duration = Duration::from_millis(1);
/// After an update, a member pauses for this many times the update's duration. Updates take long where
/// many members conflict.
const UPDATE_PAUSE_FACTOR: u32 = 8;
const MAX_UPDATE_INTERVAL: Duration = Duration::from_millis(1_500);
/// How often an unreachable store is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// A member reserves at most what it uses in this time.
const PREFETCH_TIME: Duration = Duration::from_secs(2);
/// The most outcomes kept while the store is unreachable; the oldest are dropped.
const MAX_OUTCOMES: usize = 64;
/// A member stops using its reservations this long before others may take it for dead.
const LEASE_MARGIN: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Default)]
pub(crate) struct Member {
    pub(crate) id: MemberId,
    pub(crate) ledger: Ledger,
    pub(crate) requests: Requests,
    pub(crate) throttled: u64,
    state: Sharing,
    /// Reservations made in advance, and whether the only one is for the probe.
    held: u64,
    holds_probe: bool,
    given_back: u64,
    /// Outcomes that the record lacks: new ones, and those in an update in progress.
    outcomes: Vec<Outcome>,
    reporting: Vec<Outcome>,
    /// Whether other members wait for what this member has learned.
    is_urgent: bool,
    /// Requests since the last update; they give the rate.
    used: u32,
    updated_at: LocalTime,
    /// The pause after the last update.
    pause: Duration,
    /// When waiting calls may get reservations; until then the rest may be reserved for other members.
    retry_at: LocalTime,
    is_reserved_for_others: bool,
}

/// Whether and how a process shares the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Sharing {
    /// No store is configured.
    #[default]
    Off,
    /// The record has not been read yet.
    New,
    On,
    /// The store is unreachable.
    Alone,
}

impl Member {
    pub(crate) fn new(id: MemberId, now: LocalTime, wall: ServiceTime, shared: bool) -> Self {
        Self {
            id,
            ledger: Ledger::new(now, wall),
            state: if shared { Sharing::New } else { Sharing::Off },
            updated_at: now,
            retry_at: now,
            ..Self::default()
        }
    }

    /// Forgets all but the requests in flight.
    pub(crate) fn forget(&mut self, now: LocalTime, wall: ServiceTime) {
        let requests = std::mem::take(&mut self.requests);
        *self = Self::new(MemberId::random(), now, wall, self.state != Sharing::Off);
        self.ledger.slot(self.id).reserved = requests.count();
        self.requests = requests;
    }

    /// Decides whether a request may be sent.
    pub(crate) fn decide(&self, now: LocalTime, policy: &Policy) -> Decision {
        if !self.shares_record() {
            return self.ledger.decide(now, policy);
        }
        if let Some(block) = self.ledger.blocked_at(now) {
            return Decision::WaitUntil(block);
        }
        if !policy.rate_limiting {
            return Decision::Send { probe: false };
        }
        if policy
            .max_in_flight
            .is_some_and(|most| self.requests.count() >= most.into())
        {
            return Decision::WaitForResponse(WaitReason::Concurrency);
        }
        if self.held > 0 && self.lease_is_valid(now) {
            return Decision::Send {
                probe: self.holds_probe,
            };
        }
        match self.ledger.decide(now, policy) {
            Decision::Send { .. } => Decision::WaitForResponse(WaitReason::Members),
            wait => wait,
        }
    }

    /// Returns until when, at most, the rest is reserved for other members.
    pub(crate) fn blocked_by_members(&self, now: LocalTime) -> Option<Block> {
        if !(self.shares_record() && self.is_reserved_for_others && now < self.retry_at) {
            return None;
        }
        let service_now = self.service_time(now);
        let open = self
            .ledger
            .windows
            .iter()
            .filter(|window| window.reset > service_now);
        let minute = open
            .filter(|window| window.quota == Quota::Minute)
            .max_by_key(|w| w.reset);
        let block = minute.map_or(
            Block {
                until: self.retry_at,
                named: service_now,
                reason: BlockReason::Unknown,
            },
            |window| Block {
                until: self.ledger.clock.local(window.reset),
                named: window.reset,
                reason: BlockReason::Quota(window.quota),
            },
        );
        Some(block)
    }

    /// Reserves a request that may be sent.
    pub(crate) fn reserve(&mut self, now: LocalTime, probe: bool) -> Reservation {
        let reservation = self.requests.reserve(now, probe);
        if self.shares_record() {
            self.held = self.held.saturating_sub(1);
            self.used += 1;
        } else {
            self.ledger.slot(self.id).reserved += 1;
        }
        if probe {
            self.record_probe(now);
        }
        reservation
    }

    /// Records that the request is sent now and lasts no longer than `lease`. Returns false where
    /// the reservation has lapsed, or a 429 has come.
    pub(crate) fn start(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        lease: Duration,
    ) -> bool {
        if self.ledger.blocked_at(now).is_some() && !reservation.probe {
            self.release(reservation);
            return false;
        }
        let started = self.requests.start(reservation, now, lease);
        if reservation.probe {
            self.record_probe(now);
        }
        started
    }

    /// Returns the reservation of a request that was not sent, or cannot have reached the service.
    pub(crate) fn release(&mut self, reservation: Reservation) {
        if self.requests.end(reservation).is_some() {
            self.give_back(reservation.probe);
        }
    }

    /// Records a request that ended without a usable response.
    pub(crate) fn record_lost(&mut self, reservation: Reservation, now: LocalTime) {
        // A request without a lease counts as lost already.
        if let Some(lease) = self.requests.end(reservation) {
            self.lose(lease, now);
        }
    }

    /// Records the head of a response. Returns the block if it is a 429.
    pub(crate) fn record_response(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        head: &ResponseHead,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> Option<Block> {
        let lease = self.requests.end(reservation);
        let requests = u32::from(lease.is_some());
        let sent = lease
            .and_then(|lease| lease.sent)
            .unwrap_or(now.moved(-micros(MAX_LEASE)));
        self.throttled += u64::from(head.status == 429);
        let probe = reservation.probe;
        self.record(
            Outcome {
                sent,
                ended: now,
                probe,
                requests,
                head: Some(*head),
            },
            jitter,
        )
    }

    /// Ends leases that are over: requests that were sent count as lost.
    pub(crate) fn expire(&mut self, now: LocalTime) {
        for lease in self.requests.expire(now) {
            self.lose(lease, now);
        }
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.requests.count()
    }

    pub(crate) fn unresolved(&self) -> u64 {
        self.ledger.lost.count()
    }

    /// Returns what a window leaves, including own reservations that are not used yet.
    pub(crate) fn left_in(&self, window: &Window) -> u64 {
        let left = self.ledger.left_in(window, &Policy::default());
        left.saturating_add(self.held).min(window.remaining)
    }

    /// Returns whether a probe is in flight.
    pub(crate) fn is_probing(&self, now: LocalTime) -> bool {
        self.ledger.probe.is_some_and(|probe| now < probe.until)
    }

    /// Returns when nothing known here matters any more, if all windows end as announced.
    pub(crate) fn idle_from(&self) -> LocalTime {
        self.ledger.idle_from().max(self.requests.last_end())
    }

    /// Returns the earliest time that the service's clock may show.
    pub(crate) fn service_time(&self, now: LocalTime) -> ServiceTime {
        self.ledger.clock.earliest(now)
    }

    fn record(
        &mut self,
        outcome: Outcome,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> Option<Block> {
        let block = self.ledger.record(self.id, &outcome, jitter);
        if self.state != Sharing::Off {
            self.is_urgent |= block.is_some() || outcome.probe;
            match self
                .outcomes
                .last_mut()
                .filter(|last| last.is_like(&outcome))
            {
                Some(last) => last.merge(&outcome),
                None => self.outcomes.push(outcome),
            }
        }
        block
    }

    /// Records that a request was given up. It is lost only if it was sent.
    fn lose(&mut self, Lease { sent, probe, .. }: Lease, now: LocalTime) {
        match sent {
            Some(sent) => {
                let sent = sent.min(now);
                let outcome = Outcome {
                    sent,
                    ended: now,
                    probe,
                    requests: 1,
                    head: None,
                };
                self.record(outcome, |_| Duration::ZERO);
            }
            None => self.give_back(probe),
        }
    }

    fn give_back(&mut self, probe: bool) {
        match (self.shares_record(), probe) {
            (true, true) => {
                self.given_back += 1;
                self.is_urgent = true;
            }
            (true, false) => self.held += 1,
            (false, _) => {
                let slot = self.ledger.slot(self.id);
                slot.reserved = slot.reserved.saturating_sub(1);
                if probe {
                    self.ledger.end_probe(self.id);
                }
            }
        }
    }

    /// Records the lease of the probe, if one is in flight.
    fn record_probe(&mut self, now: LocalTime) {
        if !self.shares_record()
            && let Some(lease) = self.requests.probe()
        {
            self.ledger.probe = Some(Probe {
                member: self.id,
                granted: now,
                until: lease.end,
            });
        }
    }

    /// Returns whether reservations come from the shared record.
    fn shares_record(&self) -> bool {
        matches!(self.state, Sharing::New | Sharing::On)
    }

    /// Returns whether other members still count this member's reservations as its own.
    fn lease_is_valid(&self, now: LocalTime) -> bool {
        now.since(self.updated_at) + LEASE_MARGIN < MEMBER_LEASE
    }
}

/// Updates of the shared record.
impl Member {
    /// Returns whether the record has been read.
    pub(crate) fn has_read_record(&self) -> bool {
        matches!(self.state, Sharing::On | Sharing::Alone)
    }

    /// Returns the last known record with the outcomes since.
    pub(crate) fn copy(&self) -> Option<Ledger> {
        let mut copy = self.has_read_record().then(|| self.ledger.clone())?;
        copy.is_alone = false;
        Some(copy)
    }

    /// Returns when to update the record next, if an update is needed.
    pub(crate) fn update_at(&self, waiting: u64) -> Option<LocalTime> {
        let in_flight = self.requests.count();
        let unreported: u32 = self.outcomes.iter().map(|outcome| outcome.requests).sum();
        let has_something = self.held + self.given_back + in_flight > 0 || unreported > 0;
        // Frequent reports show the members what other clients use.
        let (max_unreported, interval) = match self.ledger.contested_share() {
            Some(_) => (1, MIN_UPDATE_INTERVAL_BESIDE_OTHERS),
            None => (MAX_UNREPORTED, MIN_UPDATE_INTERVAL),
        };
        let is_idle = in_flight == 0 && waiting == 0;
        let told = match self.state {
            Sharing::Off => return None,
            Sharing::Alone => {
                let is_used = waiting > 0 || has_something || !self.reporting.is_empty();
                return is_used.then(|| self.updated_at.plus(RETRY_INTERVAL));
            }
            _ if self.is_urgent => return Some(self.updated_at),
            _ if unreported >= max_unreported || (unreported > 0 && is_idle) => {
                Some(self.updated_at.plus(interval))
            }
            _ => has_something.then(|| self.updated_at.plus(MAX_UPDATE_INTERVAL)),
        };
        // Own answered requests may have made room.
        let freed = (unreported > 0 && !self.is_reserved_for_others)
            .then(|| self.updated_at.plus(FREED_INTERVAL));
        let retry_at = freed.map_or(self.retry_at, |freed| freed.min(self.retry_at));
        let asked = (waiting > 0 && self.held == 0).then_some(retry_at);
        told.into_iter()
            .chain(asked)
            .min()
            .map(|at| at.max(self.updated_at.plus(self.pause)))
    }

    /// Returns the report for an update.
    pub(crate) fn report(&mut self, now: LocalTime, waiting: u64, jitter: f64) -> Report {
        let in_flight = self.requests.count();
        let others = self.ledger.contested_share().is_some();
        let since = now.since(self.updated_at).max(MIN_UPDATE_INTERVAL);
        let prefetch =
            whole(f64::from(self.used) / since.as_secs_f64() * PREFETCH_TIME.as_secs_f64());
        let kept = match (
            self.shares_record() && self.lease_is_valid(now),
            self.holds_probe,
        ) {
            (true, false) => self.held.min(prefetch),
            (true, true) => self.held,
            (false, _) => 0,
        };
        self.given_back += self.held - kept;
        self.held = kept;
        self.holds_probe &= kept > 0;
        (self.used, self.is_urgent) = (0, false);
        self.updated_at = now;
        self.reporting.append(&mut self.outcomes);
        let surplus = self.reporting.len().saturating_sub(MAX_OUTCOMES);
        self.reporting.drain(..surplus);
        let probe_until = self.requests.probe().map(|lease| lease.end);
        Report {
            outcomes: self.reporting.clone(),
            reserved: kept + in_flight,
            given_back: self.given_back,
            want: waiting,
            prefetch: if in_flight + waiting > 0 && !others {
                prefetch.saturating_sub(kept)
            } else {
                0
            },
            blocked: self.ledger.blocked,
            probe_until: probe_until.or(self.holds_probe.then(|| now.plus(MEMBER_LEASE))),
            leaves: false,
            jitter,
        }
    }

    /// Returns the report of a member that may end now. If it has used the key and is idle, it gives
    /// everything back and leaves.
    pub(crate) fn last_report(&mut self, now: LocalTime, waiting: u64, jitter: f64) -> Report {
        self.used = 0;
        let report = self.report(now, waiting, jitter);
        let slot = self.ledger.slot(self.id);
        let has_used = slot.got + slot.previous > 0;
        Report {
            leaves: has_used && report.reserved == 0 && report.want == 0,
            ..report
        }
    }

    /// Takes over the record after an update that was applied.
    pub(crate) fn updated(
        &mut self,
        now: LocalTime,
        ledger: Ledger,
        returned: u64,
        granted: Granted,
    ) {
        // A probe that was sent while the store was unreachable stays this member's.
        self.state = Sharing::On;
        self.reporting.clear();
        self.given_back = self.given_back.saturating_sub(returned);
        self.held += granted.requests;
        self.holds_probe |= granted.probe;
        (self.retry_at, self.is_reserved_for_others) =
            (granted.retry_at, granted.is_reserved_for_others);
        self.pause = MIN_UPDATE_PAUSE.max(now.since(self.updated_at) * UPDATE_PAUSE_FACTOR);
        self.updated_at = now;
        self.take_over(ledger);
    }

    fn take_over(&mut self, ledger: Ledger) {
        self.ledger = ledger;
        for outcome in &self.outcomes {
            self.ledger.record(self.id, outcome, |_| Duration::ZERO);
        }
    }

    /// Records that the store is unreachable. `seen` is the record if it could still be read: a member
    /// that knows nothing yet goes by it.
    pub(crate) fn update_failed(&mut self, now: LocalTime, seen: Option<Ledger>) {
        self.updated_at = now;
        (self.held, self.holds_probe) = (0, false);
        if !self.shares_record() {
            return;
        }
        if let Some(ledger) = seen.filter(|_| self.state == Sharing::New) {
            self.take_over(ledger);
            self.ledger.end_probe(self.id);
        }
        self.state = Sharing::Alone;
        self.ledger.is_alone = true;
        let (id, reserved) = (self.id, self.requests.count());
        // Other members' reservations may have been used; they cannot be seen from now on.
        self.ledger.expire_members(now, |member| member == id);
        self.ledger.slot(id).reserved = reserved;
        self.record_probe(now);
    }

    /// Moves own times to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&mut self, by: i64) {
        self.requests.shift(by);
        for outcome in self.outcomes.iter_mut().chain(&mut self.reporting) {
            *outcome = outcome.moved(by);
        }
        self.updated_at = self.updated_at.moved(by);
    }
}

impl Report {
    /// Returns the report in the time of a store whose clock is `by` microseconds ahead.
    pub(crate) fn moved(&self, by: i64) -> Self {
        Self {
            outcomes: self
                .outcomes
                .iter()
                .map(|outcome| outcome.moved(by))
                .collect(),
            blocked: self.blocked.map(|block| block.moved(by)),
            probe_until: self.probe_until.map(|until| until.moved(by)),
            ..*self
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds down; `as` saturates"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
