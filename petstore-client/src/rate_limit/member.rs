//! This process's part: its requests, and the ledger, which it may share with other members.
//!
//! Alone, a process keeps the ledger and decides by it. With a store, the ledger is a record that
//! all members update: this one then has a copy, draws reservations ahead, and tells later what came
//! of them. While the store is out of reach it goes on with its copy, alone. All of it is pure.

use std::collections::VecDeque;
use std::time::Duration;

use super::clock::{LocalTime, ServiceTime};
use super::decision::{Decision, Policy};
use super::ledger::{Block, Ledger, Outcome, Probe, ResponseHead};
use super::outstanding::{Lease, Requests, Reservation};
use super::sharing::{Granted, MEMBER_LEASE, MemberId, Report};
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
    /// In the time of the store; without one, in this process's.
    pub(crate) ledger: Ledger,
    requests: Requests,
    pub(crate) throttled: u64,
    sharing: Option<Sharing>,
}

/// What there is besides where members share the ledger.
#[derive(Debug, Clone)]
struct Sharing {
    /// How far the store's clock is ahead of the local one, in microseconds.
    ahead: i64,
    state: SharingState,
    /// Reservations drawn ahead, and whether the only one is for the probe.
    held: u64,
    holds_probe: bool,
    given_back: u64,
    reported_back: u64,
    /// What the record does not hold yet, in local time; the first ones are on their way.
    outcomes: VecDeque<Outcome>,
    reported: usize,
    untold: u32,
    /// Whether others wait for what this member has learned.
    is_urgent: bool,
    /// Requests since the last update, which tell the rate.
    used: u32,
    updated_at: LocalTime,
    /// When calls that wait may get something; until then the rest may be kept for others.
    ask_at: LocalTime,
    is_kept: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SharingState {
    /// The record has not been read yet.
    New,
    Shared,
    /// The store is out of reach.
    Alone,
}

impl Member {
    pub(crate) fn new(id: MemberId, now: LocalTime, wall: ServiceTime, shared: bool) -> Self {
        let sharing = shared.then(|| Sharing {
            ahead: 0,
            state: SharingState::New,
            held: 0,
            holds_probe: false,
            given_back: 0,
            reported_back: 0,
            outcomes: VecDeque::new(),
            reported: 0,
            untold: 0,
            is_urgent: false,
            used: 0,
            updated_at: now,
            ask_at: now,
            is_kept: false,
        });
        let ledger = Ledger::new(now, wall);
        Self { id, ledger, requests: Requests::default(), throttled: 0, sharing }
    }

    /// Decides whether a request may be sent.
    pub(crate) fn decide(&self, now: LocalTime, policy: &Policy) -> Decision {
        let at = self.ledger_time(now);
        let decision = match self.drawing() {
            Some(sharing) => self.decide_by_reservations(sharing, now, policy),
            None => self.ledger.decide(at, policy),
        };
        match decision {
            Decision::WaitUntil(block) => Decision::WaitUntil(self.local(block)),
            decision => decision,
        }
    }

    /// Returns until when at most what is left is kept for other members, once the record says so.
    pub(super) fn kept_until(&self, now: LocalTime) -> Option<Block> {
        let sharing = self.drawing().filter(|sharing| sharing.is_kept && now < sharing.ask_at)?;
        let service_now = self.service_time(now);
        let open = self.ledger.windows.iter().filter(|window| window.reset > service_now);
        let minute = open.filter(|window| window.quota == Quota::Minute).max_by_key(|w| w.reset);
        let block = minute.map_or(
            Block { until: sharing.ask_at, named: service_now, reason: BlockReason::Unknown },
            |window| Block {
                until: self.ledger.clock.local(window.reset).moved(-sharing.ahead),
                named: window.reset,
                reason: BlockReason::Quota(window.quota),
            },
        );
        Some(block)
    }

    fn decide_by_reservations(
        &self,
        sharing: &Sharing,
        now: LocalTime,
        policy: &Policy,
    ) -> Decision {
        let at = self.ledger_time(now);
        if let Some(block) = self.ledger.blocked_at(at) {
            return Decision::WaitUntil(block);
        }
        if !policy.rate_limiting {
            return Decision::Send { probe: false };
        }
        if policy.max_in_flight.is_some_and(|most| self.requests.count() >= most.into()) {
            return Decision::WaitForResponse(WaitReason::Concurrency);
        }
        if sharing.held > 0 && sharing.is_valid(now) {
            return Decision::Send { probe: sharing.holds_probe };
        }
        match self.ledger.decide(at, policy) {
            Decision::Send { .. } => Decision::WaitForResponse(WaitReason::Members),
            wait => wait,
        }
    }

    /// Reserves a request that may be sent.
    pub(crate) fn reserve(&mut self, now: LocalTime, probe: bool) -> Reservation {
        let reservation = self.requests.reserve(now, probe);
        match self.drawing_mut() {
            Some(sharing) => {
                sharing.held = sharing.held.saturating_sub(1);
                sharing.holds_probe &= !probe;
                sharing.used += 1;
            }
            None => self.ledger.slot(self.id).reserved += 1,
        }
        self.note_probe(now);
        reservation
    }

    /// Records that the request is sent now and lasts no longer than `lease`. Returns false where
    /// the reservation has lapsed, or a 429 has come.
    pub(crate) fn start(
        &mut self,
        reservation: &mut Reservation,
        now: LocalTime,
        lease: Duration,
    ) -> bool {
        let is_blocked = self.ledger.blocked_at(self.ledger_time(now)).is_some();
        if is_blocked && !reservation.probe {
            self.release(*reservation);
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
        if self.requests.end(&reservation) {
            self.give_back(reservation.probe);
        }
    }

    /// Records a request that ended without a usable response.
    pub(crate) fn record_lost(&mut self, reservation: Reservation, now: LocalTime) {
        match reservation.sent {
            None => self.release(reservation),
            Some(sent) => {
                // Without a lease it counts as lost already.
                if self.requests.end(&reservation) {
                    self.lose(sent, now, reservation.probe);
                }
            }
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
        let requests = u32::from(self.requests.end(&reservation));
        let sent = reservation.sent.unwrap_or(now);
        let probe = reservation.probe;
        self.throttled += u64::from(head.status == 429);
        let outcome = Outcome { sent, ended: now, probe, requests, head: Some(*head) };
        self.record(outcome, jitter)
    }

    /// Records that the last 429 was a ban, which only its body says.
    pub(crate) fn record_ban(&mut self) {
        self.ledger.record_ban();
    }

    /// Ends leases that are over: what was sent counts as lost.
    pub(crate) fn expire(&mut self, now: LocalTime) {
        for Lease { sent, probe, .. } in self.requests.expire(now) {
            match sent {
                Some(sent) => self.lose(sent.min(now), now, probe),
                None => self.give_back(probe),
            }
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
        let held = self.sharing.as_ref().map_or(0, |sharing| sharing.held);
        let left = self.ledger.left_in(window, &Policy::default());
        left.saturating_add(held).min(window.remaining)
    }

    pub(super) fn first_lease_end(&self) -> Option<LocalTime> {
        self.requests.first_end()
    }

    /// Returns whether a request is in flight whose response tells how many may follow.
    pub(super) fn is_probing(&self, now: LocalTime) -> bool {
        let at = self.ledger_time(now);
        self.ledger.probe.is_some_and(|probe| at < probe.until)
    }

    /// Returns when nothing here matters any more, if all goes as announced.
    pub(super) fn idle_from(&self) -> LocalTime {
        let ledger = self.ledger.idle_from().moved(-self.ahead());
        self.requests.last_end().map_or(ledger, |end| end.max(ledger))
    }

    /// Returns what the service's clock shows, at the earliest.
    pub(crate) fn service_time(&self, now: LocalTime) -> ServiceTime {
        self.ledger.clock.earliest(self.ledger_time(now))
    }

    fn record(
        &mut self,
        outcome: Outcome,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> Option<Block> {
        let block = self.ledger.record(self.id, &outcome.moved(self.ahead()), jitter);
        if let Some(sharing) = &mut self.sharing {
            sharing.is_urgent |= block.is_some() || outcome.probe;
            sharing.untold += 1;
            sharing.keep(outcome);
        }
        block.map(|block| self.local(block))
    }

    fn lose(&mut self, sent: LocalTime, now: LocalTime, probe: bool) {
        let outcome = Outcome { sent, ended: now, probe, requests: 1, head: None };
        self.record(outcome, |_| Duration::ZERO);
    }

    fn give_back(&mut self, probe: bool) {
        match self.drawing_mut() {
            Some(sharing) if probe => {
                sharing.given_back += 1;
                sharing.is_urgent = true;
            }
            Some(sharing) => sharing.held += 1,
            None => {
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
        if self.drawing().is_none()
            && let Some(lease) = self.requests.probe()
        {
            let (member, granted) = (self.id, self.ledger_time(now));
            let until = self.ledger_time(lease.end);
            self.ledger.probe = Some(Probe { member, granted, until });
        }
    }

    pub(super) fn ahead(&self) -> i64 {
        self.sharing.as_ref().map_or(0, |sharing| sharing.ahead)
    }

    fn ledger_time(&self, at: LocalTime) -> LocalTime {
        at.moved(self.ahead())
    }

    fn local(&self, block: Block) -> Block {
        block.moved(-self.ahead())
    }

    /// Returns what is shared, unless the store is out of reach.
    fn drawing(&self) -> Option<&Sharing> {
        self.sharing.as_ref().filter(|sharing| sharing.state != SharingState::Alone)
    }

    fn drawing_mut(&mut self) -> Option<&mut Sharing> {
        self.sharing.as_mut().filter(|sharing| sharing.state != SharingState::Alone)
    }
}

/// Updates of the record that members share.
impl Member {
    pub(crate) fn id(&self) -> MemberId {
        self.id
    }

    /// Returns whether the record has been read.
    pub(super) fn is_shared(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.state != SharingState::New)
    }

    /// Returns how many members there are, this one included; 0 where none are known.
    pub(crate) fn members(&self, now: LocalTime) -> usize {
        self.ledger.members(self.ledger_time(now))
    }

    /// Returns when the record is to be updated next, if anything is to be told or asked for.
    pub(crate) fn update_at(&self, waiting: u64) -> Option<LocalTime> {
        let sharing = self.sharing.as_ref()?;
        let has_something = sharing.held + sharing.given_back + self.requests.count() > 0;
        // What other clients use, the members know as well as they tell each other.
        let (max_untold, interval) = match self.ledger.shared_use() {
            Some(_) => (1, MIN_UPDATE_INTERVAL_BESIDE_OTHERS),
            None => (MAX_UNTOLD, MIN_UPDATE_INTERVAL),
        };
        let soon = sharing.updated_at.plus(interval);
        let freed = sharing.updated_at.plus(FREED_INTERVAL);
        let is_idle = self.requests.count() == 0 && waiting == 0;
        let told = match (&sharing.state, sharing.untold) {
            (SharingState::Alone, untold) => {
                let is_used = waiting > 0 || untold > 0 || has_something;
                return is_used.then(|| sharing.updated_at.plus(RETRY_INTERVAL));
            }
            _ if sharing.is_urgent => return Some(sharing.updated_at),
            (_, untold) if untold >= max_untold => Some(soon),
            (_, 1..) if is_idle => Some(soon),
            (_, 0) if !has_something => None,
            _ => Some(sharing.updated_at.plus(MAX_UPDATE_INTERVAL)),
        };
        // What came of its own requests makes room for others, perhaps.
        let asked = (waiting > 0 && sharing.held == 0).then_some(match sharing.untold {
            1.. if !sharing.is_kept => sharing.ask_at.min(freed),
            _ => sharing.ask_at,
        });
        let first = match sharing.state {
            SharingState::New => sharing.updated_at,
            _ => sharing.updated_at.plus(MIN_UPDATE_PAUSE),
        };
        told.into_iter().chain(asked).min().map(|at| at.max(first))
    }

    /// Returns what to tell with an update, in the store's time if its clock is so far ahead.
    pub(crate) fn report(&mut self, now: LocalTime, waiting: u64, spread: f64) -> Report {
        let blocked = self.ledger.blocked.map(|block| self.local(block));
        let probe_until = self.requests.probe().map(|lease| lease.end);
        let in_flight = self.requests.count();
        let others = self.ledger.shared_use().is_some();
        let is_valid = self.drawing().is_some_and(|sharing| sharing.is_valid(now));
        let Some(sharing) = &mut self.sharing else { return Report::default() };
        let since = now.since(sharing.updated_at).max(MIN_UPDATE_INTERVAL);
        let rate = f64::from(sharing.used) / since.as_secs_f64();
        let ahead = whole(rate * DRAW_AHEAD.as_secs_f64());
        let kept = match (is_valid, sharing.holds_probe) {
            (true, false) => sharing.held.min(ahead),
            (true, true) => sharing.held,
            (false, _) => 0,
        };
        sharing.given_back += sharing.held - kept;
        sharing.held = kept;
        sharing.holds_probe &= kept > 0;
        (sharing.used, sharing.is_urgent) = (0, false);
        sharing.updated_at = now;
        sharing.reported = sharing.outcomes.len();
        sharing.reported_back = sharing.given_back;
        Report {
            outcomes: sharing.outcomes.iter().copied().collect(),
            reserved: kept + in_flight,
            given_back: sharing.given_back,
            want: waiting,
            ahead: if in_flight + waiting > 0 && !others { ahead.saturating_sub(kept) } else { 0 },
            blocked,
            probe_until: probe_until
                .or_else(|| sharing.holds_probe.then(|| now.plus(MEMBER_LEASE))),
            spread,
        }
    }

    /// Takes over the record after an update: what it told and what it got.
    pub(crate) fn updated(
        &mut self,
        now: LocalTime,
        (ledger, ahead): (Ledger, i64),
        granted: Granted,
    ) {
        let Some(sharing) = &mut self.sharing else { return };
        // A probe that it sent while it was alone, it sent by itself.
        (sharing.state, sharing.ahead) = (SharingState::Shared, ahead);
        sharing.outcomes.drain(..sharing.reported);
        sharing.reported = 0;
        sharing.untold = sharing.outcomes.iter().map(|outcome| outcome.requests).sum();
        sharing.given_back = sharing.given_back.saturating_sub(sharing.reported_back);
        sharing.held += granted.requests;
        sharing.holds_probe |= granted.probe;
        (sharing.ask_at, sharing.is_kept) = (granted.again.moved(-ahead), granted.is_kept);
        sharing.updated_at = now;
        self.ledger = ledger;
        let rest: Vec<_> = sharing.outcomes.iter().map(|outcome| outcome.moved(ahead)).collect();
        for outcome in rest {
            self.ledger.record(self.id, &outcome, |_| Duration::ZERO);
        }
    }

    /// Records that the store is out of reach.
    pub(crate) fn update_failed(&mut self, now: LocalTime) {
        let Some(sharing) = &mut self.sharing else { return };
        let was = std::mem::replace(&mut sharing.state, SharingState::Alone);
        (sharing.updated_at, sharing.reported) = (now, 0);
        (sharing.held, sharing.holds_probe) = (0, false);
        if was != SharingState::Alone {
            self.ledger.cut_off = true;
            let (id, reserved) = (self.id, self.requests.count());
            // What others had reserved may be counted; from now on they cannot be seen.
            self.ledger.bury(self.ledger_time(now), |member| member == id);
            self.ledger.slot(id).reserved = reserved;
            self.note_probe(now);
        }
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

impl Sharing {
    /// Returns whether other members still count this one's reservations as its own.
    fn is_valid(&self, now: LocalTime) -> bool {
        now.since(self.updated_at) + LEASE_MARGIN < MEMBER_LEASE
    }

    /// Keeps an outcome until it is told; several that say the same are one.
    fn keep(&mut self, outcome: Outcome) {
        let fresh = self.outcomes.len() > self.reported;
        match self.outcomes.back_mut().filter(|last| fresh && last.is_like(&outcome)) {
            Some(last) => last.merge(&outcome),
            None => self.outcomes.push_back(outcome),
        }
        if self.outcomes.len() > MAX_OUTCOMES {
            self.outcomes.pop_front();
            self.reported = self.reported.saturating_sub(1);
        }
    }
}

impl Outcome {
    fn moved(&self, by: i64) -> Self {
        Self { sent: self.sent.moved(by), ended: self.ended.moved(by), ..*self }
    }

    /// Returns whether two outcomes differ in nothing but what is left of the same window.
    fn is_like(&self, other: &Self) -> bool {
        let plain = |outcome: &Self| {
            let head = outcome.head.filter(|head| head.status < 300 && !outcome.probe)?;
            head.figure.map(|figure| (figure.limit, figure.reset))
        };
        plain(self).is_some() && plain(self) == plain(other)
    }

    fn merge(&mut self, other: &Self) {
        let requests = self.requests + other.requests;
        let figure = |outcome: &Self| outcome.head.and_then(|head| head.figure);
        let remaining = figure(self).iter().chain(&figure(other)).map(|f| f.remaining).min();
        if other.sent >= self.sent {
            *self = *other;
        }
        self.requests = requests;
        if let Some(head) = &mut self.head
            && let Some(figure) = &mut head.figure
        {
            figure.remaining = remaining.unwrap_or(figure.remaining);
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
