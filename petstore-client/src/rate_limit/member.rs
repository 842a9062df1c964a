//! This process's part: its requests, and the ledger, which it may share with other members.
//!
//! Alone, a process keeps the ledger and decides by it. With a store, the ledger is a record that
//! all members update: this one then has a copy, draws reservations ahead, and tells later what came
//! of them. While the store is out of reach it goes on with its copy, alone. All of it is pure.

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

/// Outcomes are told when there are so many, though not more often than each interval, and
/// otherwise when a member has had reservations for some time.
const MAX_UNTOLD: u32 = 16;
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(100);
const MIN_UPDATE_INTERVAL_BESIDE_OTHERS: Duration = Duration::from_millis(10);
/// How soon a member asks whether what came of its own requests makes room for those that wait.
const FREED_INTERVAL: Duration = Duration::from_millis(50);
const MIN_UPDATE_PAUSE: Duration = Duration::from_millis(1);
/// After an update a member leaves the store alone for so many times as long as that took: where
/// many members come between each other, that takes long.
const UPDATE_PAUSE_FACTOR: u32 = 8;
const MAX_UPDATE_INTERVAL: Duration = Duration::from_millis(1_500);
/// How often a store that is out of reach is tried.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// For how long of its own rate a member draws reservations ahead.
const DRAW_AHEAD: Duration = Duration::from_secs(2);
/// More outcomes than this are not kept: while the store is out of reach, the last ones matter.
const MAX_OUTCOMES: usize = 64;
/// Reservations are not used any more when other members may take this one for dead.
const LEASE_MARGIN: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub(crate) struct Member {
    id: MemberId,
    pub(crate) ledger: Ledger,
    requests: Requests,
    pub(crate) throttled: u64,
    state: Sharing,
    /// Reservations drawn ahead, and whether the only one is for the probe.
    held: u64,
    holds_probe: bool,
    given_back: u64,
    /// What the record does not hold yet; what an update tells that has not ended stands apart.
    outcomes: Vec<Outcome>,
    telling: Vec<Outcome>,
    /// Whether others wait for what this member has learned.
    is_urgent: bool,
    /// Requests since the last update, which tell the rate.
    used: u32,
    updated_at: LocalTime,
    /// The pause after the last update.
    pause: Duration,
    /// When calls that wait may get something; until then the rest may be kept for others.
    ask_at: LocalTime,
    is_kept: bool,
}

/// How a process shares the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// There is no store.
    Off,
    /// The record has not been read yet.
    New,
    On,
    /// The store is out of reach.
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

    /// Forgets all but the requests in flight.
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

    /// Returns until when at most what is left is kept for other members, once the record says so.
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
            self.used += 1;
        } else {
            self.ledger.slot(self.id).reserved += 1;
        }
        if probe {
            self.note_probe(now);
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
            self.note_probe(now);
        }
        started
    }

    /// Gives a reservation back whose request was not sent, or cannot have reached the service.
    pub(crate) fn release(&mut self, reservation: Reservation) {
        if self.requests.end(reservation).is_some() {
            self.give_back(reservation.probe);
        }
    }

    /// Records a request that ended without a usable response.
    pub(crate) fn record_lost(&mut self, reservation: Reservation, now: LocalTime) {
        // Without a lease it counts as lost already.
        if let Some(lease) = self.requests.end(reservation) {
            self.lose(lease, now);
        }
    }

    /// Records the head of a response. Returns the block that a 429 asks for.
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

    /// Records that the last 429 was a ban, which only its body says.
    pub(crate) fn record_ban(&mut self) {
        self.ledger.record_ban();
    }

    /// Ends leases that are over: what was sent counts as lost.
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

    /// Returns what a window leaves; what is drawn ahead is left as well.
    pub(super) fn left_in(&self, window: &Window) -> u64 {
        let left = self.ledger.left_in(window, &Policy::default());
        left.saturating_add(self.held).min(window.remaining)
    }

    pub(super) fn first_lease_end(&self) -> Option<LocalTime> {
        self.requests.first_end()
    }

    /// Returns whether a request is in flight whose response tells how many may follow.
    pub(super) fn is_probing(&self, now: LocalTime) -> bool {
        self.ledger.probe.is_some_and(|probe| now < probe.until)
    }

    /// Returns when nothing here matters any more, if all goes as announced.
    pub(super) fn idle_from(&self) -> LocalTime {
        self.ledger.idle_from().max(self.requests.last_end())
    }

    /// Returns what the service's clock shows, at the earliest.
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

    /// Records that a request was given up. What was not sent is not lost.
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

    /// Notes the lease of the probe, if there is one.
    fn note_probe(&mut self, now: LocalTime) {
        if !self.draws()
            && let Some(lease) = self.requests.probe()
        {
            self.ledger.probe = Some(Probe { member: self.id, granted: now, until: lease.end });
        }
    }

    /// Returns whether it needs reservations from the record.
    fn draws(&self) -> bool {
        matches!(self.state, Sharing::New | Sharing::On)
    }

    /// Returns whether other members still count this one's reservations as its own.
    fn holds(&self, now: LocalTime) -> bool {
        now.since(self.updated_at) + LEASE_MARGIN < MEMBER_LEASE
    }
}

/// Updates of the record that members share.
impl Member {
    pub(crate) fn id(&self) -> MemberId {
        self.id
    }

    /// Returns whether the record has been read.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.state, Sharing::On | Sharing::CutOff)
    }

    /// Returns what the record held when it was last seen, and what came of requests since.
    pub(super) fn copy(&self) -> Option<Ledger> {
        let mut copy = self.is_shared().then(|| self.ledger.clone())?;
        copy.cut_off = false;
        Some(copy)
    }

    /// Returns how many members there are, this one included; 0 where none are known.
    pub(crate) fn members(&self, now: LocalTime) -> usize {
        self.ledger.members(now)
    }

    /// Returns when the record is to be updated next, if anything is to be told or asked for.
    pub(crate) fn update_at(&self, waiting: u64) -> Option<LocalTime> {
        let in_flight = self.requests.count();
        let untold: u32 = self.outcomes.iter().map(|outcome| outcome.requests).sum();
        let has_something = self.held + self.given_back + in_flight > 0 || untold > 0;
        // What other clients use, the members know as well as they tell each other.
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
        // What came of its own requests makes room for others, perhaps.
        let freed = (untold > 0 && !self.is_kept).then(|| self.updated_at.plus(FREED_INTERVAL));
        let ask_at = freed.map_or(self.ask_at, |freed| freed.min(self.ask_at));
        let asked = (waiting > 0 && self.held == 0).then_some(ask_at);
        told.into_iter().chain(asked).min().map(|at| at.max(self.updated_at.plus(self.pause)))
    }

    /// Returns what to tell with an update.
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

    /// Takes over the record after an update: what it told and what it got.
    pub(crate) fn updated(
        &mut self,
        now: LocalTime,
        ledger: Ledger,
        told_back: u64,
        granted: Granted,
    ) {
        // A probe that it sent while it was alone, it sent by itself.
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

    /// Records that the store is out of reach.
    pub(crate) fn update_failed(&mut self, now: LocalTime) {
        self.updated_at = now;
        (self.held, self.holds_probe) = (0, false);
        if self.draws() {
            self.state = Sharing::CutOff;
            self.ledger.cut_off = true;
            let (id, reserved) = (self.id, self.requests.count());
            // What others had reserved may be counted; from now on they cannot be seen.
            self.ledger.bury(now, |member| member == id);
            self.ledger.slot(id).reserved = reserved;
            self.note_probe(now);
        }
    }

    /// Moves all that is known by itself to a clock that is so many microseconds ahead.
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
    reason = "rounding down is meant, and `as` saturates"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
