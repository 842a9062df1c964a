//! A member: this process's requests, and the ledger, which other members may share.
//!
//! Without a store, a process has its own ledger. With a store, the ledger is a record that all
//! members update. Each member has a copy, reserves requests in advance, and reports their outcomes
//! later. While the store is unreachable, it continues alone with its copy. This module is pure.

use std::time::Duration;

use super::clock::{LocalTime, ServiceTime, micros};
use super::decision::{Decision, Policy};
use super::ledger::{Ledger, Probe};
use super::outcome::{Block, Outcome, ResponseHead};
use super::outstanding::{Lease, MAX_LEASE, Requests, Reservation};
use super::sharing::{Granted, MEMBER_LEASE, Report};
use super::slot::MemberId;
use super::snapshot::{BlockReason, Quota, WaitReason};
use super::window::Window;

/// A member reports when it has this many outcomes, but at most once per interval, and otherwise
/// when it has had reservations for some time.
const MAX_UNTOLD: u32 = 16;
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(100);
const MIN_UPDATE_INTERVAL_BESIDE_OTHERS: Duration = Duration::from_millis(10);
/// How soon a member checks whether its own outcomes make room for its waiting calls.
const FREED_INTERVAL: Duration = Duration::from_millis(50);
const MIN_UPDATE_PAUSE: Duration = Duration::from_millis(1);
/// After an update, a member pauses for this multiple of the update's duration, because updates
/// take long if many members conflict.
const UPDATE_PAUSE_FACTOR: u32 = 8;
const MAX_UPDATE_INTERVAL: Duration = Duration::from_millis(1_500);
/// How often a member retries an unreachable store.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// A member reserves the requests of this period in advance, at its current rate.
const DRAW_AHEAD: Duration = Duration::from_secs(2);
/// The maximum number of kept outcomes. While the store is unreachable, the last ones matter.
const MAX_OUTCOMES: usize = 64;
/// Reservations expire before other members may consider this one dead.
const LEASE_MARGIN: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub(crate) struct Member {
    id: MemberId,
    pub(crate) ledger: Ledger,
    requests: Requests,
    pub(crate) throttled: u64,
    state: Sharing,
    /// Reservations made in advance, and whether the only one is for the probe.
    held: u64,
    holds_probe: bool,
    given_back: u64,
    /// Outcomes that are not in the record yet, and those that a running update reports.
    outcomes: Vec<Outcome>,
    telling: Vec<Outcome>,
    /// Whether others wait for this member's outcomes.
    is_urgent: bool,
    /// Requests since the last update, for the rate.
    used: u32,
    updated_at: LocalTime,
    /// The pause after the last update.
    pause: Duration,
    /// When waiting calls may get something. Until then, the rest may be reserved for others.
    ask_at: LocalTime,
    is_kept: bool,
}

/// The state of sharing the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// There is no store.
    Off,
    /// The record has not been read yet.
    New,
    On,
    /// The store is unreachable.
    CutOff,
}

impl Member {
    pub(crate) fn new(id: MemberId, now: LocalTime, wall: ServiceTime, shared: bool) -> Self {
        Self {
            id,
            ledger: Ledger::new(now, wall),
            requests: Requests::default(),
            throttled: 0,
            state: if shared { Sharing::New } else { Sharing::Off },
            held: 0,
            holds_probe: false,
            given_back: 0,
            outcomes: Vec::new(),
            telling: Vec::new(),
            is_urgent: false,
            used: 0,
            updated_at: now,
            pause: Duration::ZERO,
            ask_at: now,
            is_kept: false,
        }
    }

    /// Forgets everything except the requests in flight.
    pub(super) fn forget(&mut self, now: LocalTime, wall: ServiceTime) {
        let requests = std::mem::take(&mut self.requests);
        *self = Self::new(MemberId::random(), now, wall, self.state != Sharing::Off);
        self.ledger.slot(self.id).reserved = requests.count();
        self.requests = requests;
    }

    /// Decides whether a request may be sent.
    pub(crate) fn decide(&self, now: LocalTime, policy: &Policy) -> Decision {
        if !self.draws() {
            return self.ledger.decide(now, policy);
        }
        if let Some(block) = self.ledger.blocked_at(now) {
            return Decision::WaitUntil(block);
        }
        if !policy.rate_limiting {
            return Decision::Send { probe: false };
        }
        if policy.max_in_flight.is_some_and(|most| self.requests.count() >= most.into()) {
            return Decision::WaitForResponse(WaitReason::Concurrency);
        }
        if self.held > 0 && self.holds(now) {
            return Decision::Send { probe: self.holds_probe };
        }
        match self.ledger.decide(now, policy) {
            Decision::Send { .. } => Decision::WaitForResponse(WaitReason::Members),
            wait => wait,
        }
    }

    /// Returns the latest end of a wait for quota that is reserved for other members.
    pub(super) fn kept_until(&self, now: LocalTime) -> Option<Block> {
        if !(self.draws() && self.is_kept && now < self.ask_at) {
            return None;
        }
        let service_now = self.service_time(now);
        let open = self.ledger.windows.iter().filter(|window| window.reset > service_now);
        let minute = open.filter(|window| window.quota == Quota::Minute).max_by_key(|w| w.reset);
        let block = minute.map_or(
            Block { until: self.ask_at, named: service_now, reason: BlockReason::Unknown },
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
        if self.draws() {
            self.held = self.held.saturating_sub(1);
            self.holds_probe &= !probe;
            self.used += 1;
        } else {
            self.ledger.slot(self.id).reserved += 1;
        }
        if probe {
            self.note_probe(now);
        }
        reservation
    }

    /// Records that the request is sent now, with this lease. Returns false if the reservation has
    /// lapsed, or a 429 has come.
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
            self.note_probe(now);
        }
        started
    }

    /// Releases a reservation whose request was not sent, or cannot have reached the service.
    pub(crate) fn release(&mut self, reservation: Reservation) {
        if self.requests.end(reservation).is_some() {
            self.give_back(reservation.probe);
        }
    }

    /// Records a request that ended without a usable response.
    pub(crate) fn record_lost(&mut self, reservation: Reservation, now: LocalTime) {
        // Without a lease, it already counts as lost.
        if let Some(lease) = self.requests.end(reservation) {
            self.lose(lease, now);
        }
    }

    /// Records the head of a response. Returns the block of a 429.
    pub(crate) fn record_response(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        head: &ResponseHead,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> Option<Block> {
        let lease = self.requests.end(reservation);
        let requests = u32::from(lease.is_some());
        let sent = lease.and_then(|lease| lease.sent).unwrap_or(now.moved(-micros(MAX_LEASE)));
        self.throttled += u64::from(head.status == 429);
        let probe = reservation.probe;
        self.record(Outcome { sent, ended: now, probe, requests, head: Some(*head) }, jitter)
    }

    /// Records that the last 429 was a ban, according to its body.
    pub(crate) fn record_ban(&mut self) {
        self.ledger.record_ban();
    }

    /// Ends expired leases. Sent requests then count as lost.
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

    /// Returns what a window leaves, including reservations made in advance.
    pub(super) fn left_in(&self, window: &Window) -> u64 {
        let left = self.ledger.left_in(window, &Policy::default());
        left.saturating_add(self.held).min(window.remaining)
    }

    pub(super) fn first_lease_end(&self) -> Option<LocalTime> {
        self.requests.first_end()
    }

    /// Returns whether a probe is in flight.
    pub(super) fn is_probing(&self, now: LocalTime) -> bool {
        self.ledger.probe.is_some_and(|probe| now < probe.until)
    }

    /// Returns when this member's state no longer matters, if windows and blocks end as announced.
    pub(super) fn idle_from(&self) -> LocalTime {
        self.ledger.idle_from().max(self.requests.last_end())
    }

    /// Returns the earliest possible time of the service's clock.
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
            match self.outcomes.last_mut().filter(|last| last.is_like(&outcome)) {
                Some(last) => last.merge(&outcome),
                None => self.outcomes.push(outcome),
            }
        }
        block
    }

    /// Records that a request was dropped. An unsent request is not lost.
    fn lose(&mut self, Lease { sent, probe, .. }: Lease, now: LocalTime) {
        match sent {
            Some(sent) => {
                let sent = sent.min(now);
                let outcome = Outcome { sent, ended: now, probe, requests: 1, head: None };
                self.record(outcome, |_| Duration::ZERO);
            }
            None => self.give_back(probe),
        }
    }

    fn give_back(&mut self, probe: bool) {
        match (self.draws(), probe) {
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

    /// Records the lease of the probe, if there is one.
    fn note_probe(&mut self, now: LocalTime) {
        if !self.draws()
            && let Some(lease) = self.requests.probe()
        {
            self.ledger.probe = Some(Probe { member: self.id, granted: now, until: lease.end });
        }
    }

    /// Returns whether this member needs reservations from the record.
    fn draws(&self) -> bool {
        matches!(self.state, Sharing::New | Sharing::On)
    }

    /// Returns whether other members still respect this member's reservations.
    fn holds(&self, now: LocalTime) -> bool {
        now.since(self.updated_at) + LEASE_MARGIN < MEMBER_LEASE
    }
}

/// Updates of the shared record.
impl Member {
    pub(crate) fn id(&self) -> MemberId {
        self.id
    }

    /// Returns whether the record has been read.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.state, Sharing::On | Sharing::CutOff)
    }

    /// Returns the last known record, including the outcomes since.
    pub(super) fn copy(&self) -> Option<Ledger> {
        let mut copy = self.is_shared().then(|| self.ledger.clone())?;
        copy.cut_off = false;
        Some(copy)
    }

    /// Returns the number of members, including this one; 0 if unknown.
    pub(crate) fn members(&self, now: LocalTime) -> usize {
        self.ledger.members(now)
    }

    /// Returns the time of the next update of the record, if there is anything to report or
    /// request.
    pub(crate) fn update_at(&self, waiting: u64) -> Option<LocalTime> {
        let in_flight = self.requests.count();
        let untold: u32 = self.outcomes.iter().map(|outcome| outcome.requests).sum();
        let has_something = self.held + self.given_back + in_flight > 0 || untold > 0;
        // Next to other clients, members report more often, to know what is used.
        let (max_untold, interval) = match self.ledger.contested() {
            Some(_) => (1, MIN_UPDATE_INTERVAL_BESIDE_OTHERS),
            None => (MAX_UNTOLD, MIN_UPDATE_INTERVAL),
        };
        let is_idle = in_flight == 0 && waiting == 0;
        let told = match self.state {
            Sharing::Off => return None,
            Sharing::CutOff => {
                let is_used = waiting > 0 || has_something || !self.telling.is_empty();
                return is_used.then(|| self.updated_at.plus(RETRY_INTERVAL));
            }
            _ if self.is_urgent => return Some(self.updated_at),
            _ if untold >= max_untold || (untold > 0 && is_idle) => {
                Some(self.updated_at.plus(interval))
            }
            _ => has_something.then(|| self.updated_at.plus(MAX_UPDATE_INTERVAL)),
        };
        // Its own outcomes may make room for others.
        let freed = (untold > 0 && !self.is_kept).then(|| self.updated_at.plus(FREED_INTERVAL));
        let ask_at = freed.map_or(self.ask_at, |freed| freed.min(self.ask_at));
        let asked = (waiting > 0 && self.held == 0).then_some(ask_at);
        told.into_iter().chain(asked).min().map(|at| at.max(self.updated_at.plus(self.pause)))
    }

    /// Returns the report for an update.
    pub(crate) fn report(&mut self, now: LocalTime, waiting: u64, spread: f64) -> Report {
        let in_flight = self.requests.count();
        let others = self.ledger.contested().is_some();
        let since = now.since(self.updated_at).max(MIN_UPDATE_INTERVAL);
        let ahead = whole(f64::from(self.used) / since.as_secs_f64() * DRAW_AHEAD.as_secs_f64());
        let kept = match (self.draws() && self.holds(now), self.holds_probe) {
            (true, false) => self.held.min(ahead),
            (true, true) => self.held,
            (false, _) => 0,
        };
        self.given_back += self.held - kept;
        self.held = kept;
        self.holds_probe &= kept > 0;
        (self.used, self.is_urgent) = (0, false);
        self.updated_at = now;
        self.telling.append(&mut self.outcomes);
        let surplus = self.telling.len().saturating_sub(MAX_OUTCOMES);
        self.telling.drain(..surplus);
        let probe_until = self.requests.probe().map(|lease| lease.end);
        Report {
            outcomes: self.telling.clone(),
            reserved: kept + in_flight,
            given_back: self.given_back,
            want: waiting,
            ahead: if in_flight + waiting > 0 && !others { ahead.saturating_sub(kept) } else { 0 },
            blocked: self.ledger.blocked,
            probe_until: probe_until.or(self.holds_probe.then(|| now.plus(MEMBER_LEASE))),
            spread,
        }
    }

    /// Applies the result of an update.
    pub(crate) fn updated(
        &mut self,
        now: LocalTime,
        ledger: Ledger,
        told_back: u64,
        granted: Granted,
    ) {
        // It sent this probe on its own while it was alone.
        self.state = Sharing::On;
        self.telling.clear();
        self.given_back = self.given_back.saturating_sub(told_back);
        self.held += granted.requests;
        self.holds_probe |= granted.probe;
        (self.ask_at, self.is_kept) = (granted.again, granted.is_kept);
        self.pause = MIN_UPDATE_PAUSE.max(now.since(self.updated_at) * UPDATE_PAUSE_FACTOR);
        self.updated_at = now;
        self.ledger = ledger;
        for outcome in &self.outcomes {
            self.ledger.record(self.id, outcome, |_| Duration::ZERO);
        }
    }

    /// Records that the store is unreachable.
    pub(crate) fn update_failed(&mut self, now: LocalTime) {
        self.updated_at = now;
        (self.held, self.holds_probe) = (0, false);
        if self.draws() {
            self.state = Sharing::CutOff;
            self.ledger.cut_off = true;
            let (id, reserved) = (self.id, self.requests.count());
            // The service may count what others had reserved, but from now on they are invisible.
            self.ledger.bury(now, |member| member == id);
            self.ledger.slot(id).reserved = reserved;
            self.note_probe(now);
        }
    }

    /// Converts all times to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&mut self, by: i64) {
        self.requests.shift(by);
        for outcome in self.outcomes.iter_mut().chain(&mut self.telling) {
            *outcome = outcome.moved(by);
        }
        self.updated_at = self.updated_at.moved(by);
    }
}

impl Report {
    /// Returns the report in the time of a store whose clock is `by` microseconds ahead.
    pub(crate) fn moved(&self, by: i64) -> Self {
        Self {
            outcomes: self.outcomes.iter().map(|outcome| outcome.moved(by)).collect(),
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
