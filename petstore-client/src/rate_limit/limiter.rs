//! The limiter of one key: calls acquire a permit, send their request, and report the response.
//!
//! The ledger makes all decisions. Every change of it grants the requests that may then be sent, so
//! that no waiter depends on another task. A waiter that does not run in time loses its grant. If
//! members share the ledger, any call that finds an update due starts it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, Weak};
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
// Under the model checker, another task may run at each lock.
#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use super::clock::{LocalTime, micros};
use super::decision::{Decision, Policy};
use super::member::Member;
use super::outcome::{Block, ResponseHead};
use super::outstanding::Reservation;
use super::queue::{Lines, Place};
use super::slot::MemberId;
use super::snapshot::{Blocked, Priority, QuotaWindow, RateLimits, WaitReason};
use super::store::{SharedRecord, StoreError};
use crate::backoff::jitter;
use crate::clock;

/// How often a waiter checks for expired leases, because neither their tasks nor the first waiter
/// may be running. Long queues check less often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const LOOK_INTERVAL_PER_WAITER: Duration = Duration::from_micros(100);
/// How soon a call that may not wait longer checks the result of an update of the shared record.
const ANSWER_INTERVAL: Duration = Duration::from_millis(5);

/// A call's request for a permit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acquire {
    /// Its place in the queue, if it was already in it.
    pub(crate) place: Option<u64>,
    pub(crate) priority: Priority,
    pub(crate) policy: Policy,
    /// The latest instant until which a block may delay it.
    pub(crate) latest: Instant,
    /// Whether to send it regardless of the limits, because the user requested that.
    pub(crate) forced: bool,
    /// The maximum duration of the request.
    pub(crate) lease: Duration,
}

/// Why a call waits, and until when, if known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) reason: WaitReason,
    pub(crate) blocked: Option<Blocked>,
}

/// The limiter of one key and origin.
#[derive(Debug)]
pub(crate) struct Limiter {
    pub(super) this: Weak<Self>,
    start: Instant,
    /// The difference of the store's clock to this process's clock, in microseconds.
    pub(super) ahead: AtomicI64,
    state: Mutex<State>,
    /// Wakes all waiters after a new block, which may be too long for some.
    changed: Notify,
    pub(super) shared: Option<SharedRecord>,
    #[cfg(feature = "test-util")]
    test_clock: Option<super::TestClock>,
}

/// The ledger and the queue.
#[derive(Debug)]
pub(super) struct State {
    pub(super) member: Member,
    pub(super) lines: Lines,
    /// The last block for which the waiters were woken.
    announced: Option<Block>,
    /// The policy of the last call.
    pub(super) policy: Policy,
    /// The start of a running update of the record, and the time of the next planned one.
    pub(super) updating: Option<LocalTime>,
    pub(super) planned: Option<LocalTime>,
    /// The problem of the store, if any, and the number of its changes.
    pub(super) problem: Option<String>,
    pub(super) changes: u64,
}

pub(super) type StateGuard<'s> = MutexGuard<'s, State>;

/// Numbers the places in all queues, because a call may continue in another key's queue.
static PLACES: AtomicU64 = AtomicU64::new(1);

/// The right to send one request now. If it is dropped, the request is unresolved.
#[derive(Debug)]
#[must_use = "a permit is for sending a request"]
pub(crate) struct Permit<'l> {
    limiter: &'l Limiter,
    reservation: Option<Reservation>,
    place: u64,
    has_waited: bool,
}

/// A place in the queue. Dropping it leaves the queue.
struct InLine<'l> {
    limiter: &'l Limiter,
    request: Acquire,
    place: Place,
    grant: oneshot::Receiver<Reservation>,
}

impl Limiter {
    pub(crate) fn new(shared: Option<SharedRecord>) -> Arc<Self> {
        let state = State {
            member: new_member(LocalTime(0), shared.is_some()),
            lines: Lines::default(),
            announced: None,
            policy: Policy::default(),
            updating: None,
            planned: None,
            problem: None,
            changes: 0,
        };
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            start: clock::now(),
            ahead: AtomicI64::new(0),
            state: Mutex::new(state),
            changed: Notify::new(),
            shared,
            #[cfg(feature = "test-util")]
            test_clock: None,
        })
    }

    /// Creates a limiter with a test's clock.
    #[cfg(feature = "test-util")]
    pub(crate) fn on_test_clock(clock: super::TestClock) -> Arc<Self> {
        let limiter = Self::new(None);
        let mut limiter = Arc::into_inner(limiter).expect("not shared yet");
        let state = limiter.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let wall = clock.wall().into();
        state.member = Member::new(MemberId::random(), LocalTime(0), wall, false);
        limiter.test_clock = Some(clock);
        Arc::new_cyclic(|this| Self { this: Weak::clone(this), ..limiter })
    }

    /// Waits until a request may be sent. Fails as soon as a block is known to last longer than the
    /// call may wait. Calls `report` for each wait.
    pub(crate) async fn acquire(
        &self,
        request: Acquire,
        mut report: impl FnMut(Wait),
    ) -> Result<Permit<'_>, Blocked> {
        let number = request.place.unwrap_or_else(|| PLACES.fetch_add(1, Ordering::Relaxed));
        let place = Place(request.priority, number);
        if let Some(permit) = self.try_acquire(request, place) {
            return Ok(permit);
        }
        let mut line = self.join(request, place);
        let (mut reported, mut is_first_look) = (None, true);
        loop {
            let changed = self.changed.notified();
            let (wait, is_first, wake) = self.look(&line)?;
            #[cfg(feature = "test-util")]
            let wake = self.test_clock.as_ref().map_or(wake, |clock| clock.look(wake));
            let is_reported = |wait: &Wait| match wait.blocked {
                Some(_) => is_first || is_first_look,
                // Most responses arrive soon.
                None => is_first && !is_first_look,
            };
            if let Some(wait) = wait.filter(is_reported) {
                let key = (wait.reason, wait.blocked.map(|blocked| blocked.until));
                if reported != Some(key) {
                    reported = Some(key);
                    report(wait);
                }
            }
            is_first_look = false;
            tokio::select! {
                biased; // A grant that has come is taken.
                grant = &mut line.grant => match grant {
                    Ok(reservation) if self.start(reservation, request.lease) => {
                        return Ok(self.permit(reservation, place, true));
                    }
                    // The grant has lapsed, because this task did not run.
                    _ => {
                        drop(line);
                        line = self.join(request, place);
                    }
                },
                () = changed => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Returns a snapshot of the limits.
    pub(crate) fn snapshot(&self, policy: &Policy) -> RateLimits {
        let (_, state) = self.lock();
        let is_known = self.shared.is_none() || state.member.is_shared();
        drop(state);
        if !is_known {
            self.start_update();
        }
        let (now, state) = self.lock();
        let (member, service_now) = (&state.member, state.member.service_time(now));
        let open = member.ledger.windows.iter().filter(|window| window.reset > service_now);
        let windows = open.map(|window| QuotaWindow {
            quota: window.quota,
            limit: window.limit,
            remaining: member.left_in(window),
            reset: window.reset.system(),
        });
        let (wait_reason, blocked) = match member.decide(now, policy) {
            // The next call would request it.
            Decision::Send { .. } | Decision::WaitForResponse(WaitReason::Members) => (None, None),
            Decision::WaitUntil(block) => (Some(WaitReason::Blocked), Some(blocked(&block, now))),
            Decision::WaitForResponse(reason) => (Some(reason), None),
        };
        RateLimits {
            windows: windows.collect(),
            service_time: Some(service_now.system()),
            blocked,
            wait_reason,
            in_flight: u32::try_from(member.in_flight()).unwrap_or(u32::MAX),
            unresolved: u32::try_from(member.unresolved()).unwrap_or(u32::MAX),
            waiting: state.lines.waiting(),
            throttled: member.throttled,
            age: member.ledger.seen_at.map(|at| now.since(at)),
            shared: self.shared_status(&state, now),
        }
    }

    /// Records that the last 429 was a ban.
    pub(crate) fn record_ban(&self) {
        self.change(|member, _| member.record_ban());
    }

    /// Forgets everything, including the shared record.
    pub(crate) async fn forget(&self) -> Result<(), StoreError> {
        self.change(|member, now| member.forget(now, clock::wall().into()));
        match &self.shared {
            Some(SharedRecord { store, key }) => store.forget(Some(key)).await,
            None => Ok(()),
        }
    }

    /// Returns when this limiter no longer matters.
    pub(super) fn idle_from(&self) -> Instant {
        let at = self.lock().1.member.idle_from();
        self.instant(at)
    }

    /// Returns a permit immediately, if one is available and nobody waits.
    fn try_acquire(&self, request: Acquire, place: Place) -> Option<Permit<'_>> {
        let (now, mut state) = self.lock();
        state.policy = request.policy;
        let State { member, lines, .. } = &mut *state;
        let probe = match member.decide(now, &request.policy) {
            _ if request.forced && !member.is_probing(now) => Some(true),
            Decision::Send { probe } if lines.find(&request.policy, place).1 => Some(probe),
            _ => None,
        };
        let reservation = probe.map(|probe| {
            let reservation = member.reserve(now, probe);
            member.start(reservation, now, request.lease);
            reservation
        });
        self.plan_update(now, state);
        reservation.map(|reservation| self.permit(reservation, place, false))
    }

    fn join(&self, request: Acquire, place: Place) -> InLine<'_> {
        let grant = self.lock().1.lines.join(&request.policy, place);
        InLine { limiter: self, request, place, grant }
    }

    /// Grants the requests that may be sent. Returns what a waiting call waits for, whether it is
    /// the first, and when to check again.
    fn look(&self, line: &InLine<'_>) -> Result<(Option<Wait>, bool, Instant), Blocked> {
        let (now, mut state) = self.lock();
        state.member.expire(now);
        self.grant(&mut state, now);
        let waiters = u32::try_from(state.lines.waiting()).unwrap_or(u32::MAX);
        let InLine { request, place, .. } = line;
        let (waits, is_first) = state.lines.find(&request.policy, *place);
        let instant = clock::now();
        let mut wake = instant + LOOK_INTERVAL;
        let mut wait = None;
        // A call that is no longer in the queue has a grant.
        match state.member.decide(now, &request.policy) {
            Decision::WaitUntil(block) if waits => {
                let blocked = blocked(&block, now);
                wake = self.instant(block.until);
                if wake > request.latest {
                    return Err(blocked);
                }
                wait = Some(Wait { reason: WaitReason::Blocked, blocked: Some(blocked) });
            }
            Decision::WaitForResponse(reason) if waits => {
                if reason == WaitReason::Members {
                    match state.member.kept_until(now) {
                        Some(block) if request.latest <= instant => {
                            return Err(blocked(&block, now));
                        }
                        _ => wake = request.latest.clamp(instant + ANSWER_INTERVAL, wake),
                    }
                }
                wait = Some(Wait { reason, blocked: None });
            }
            _ => {}
        }
        if !is_first {
            wake += LOOK_INTERVAL_PER_WAITER * waiters;
        } else if let Some(end) = state.member.first_lease_end() {
            wake = wake.min(self.instant(end));
        }
        self.plan_update(now, state);
        Ok((wait, is_first, wake))
    }

    /// Changes the ledger, and grants the requests that may then be sent.
    fn change<T>(&self, change: impl FnOnce(&mut Member, LocalTime) -> T) -> T {
        let (now, mut state) = self.lock();
        let result = change(&mut state.member, now);
        self.go_on(now, state);
        result
    }

    pub(super) fn go_on(&self, now: LocalTime, mut state: StateGuard<'_>) {
        if !state.lines.is_empty() {
            state.member.expire(now);
            self.grant(&mut state, now);
        }
        self.plan_update(now, state);
    }

    fn grant(&self, state: &mut State, now: LocalTime) {
        let State { member, lines, announced, .. } = state;
        if let Some(Decision::WaitUntil(block)) = lines.grant(member, now)
            && *announced != Some(block)
        {
            *announced = Some(block);
            self.changed.notify_waiters();
        }
    }

    fn start(&self, reservation: Reservation, lease: Duration) -> bool {
        self.change(|member, now| member.start(reservation, now, lease))
    }

    fn permit(&self, reservation: Reservation, place: Place, has_waited: bool) -> Permit<'_> {
        Permit { limiter: self, reservation: Some(reservation), place: place.1, has_waited }
    }

    pub(super) fn lock(&self) -> (LocalTime, StateGuard<'_>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (self.now(), state)
    }

    pub(super) fn now(&self) -> LocalTime {
        #[cfg(feature = "test-util")]
        if let Some(clock) = &self.test_clock {
            return clock.local();
        }
        let since = micros(clock::now().saturating_duration_since(self.start));
        LocalTime(since).moved(self.ahead.load(Ordering::Relaxed))
    }

    pub(super) fn instant(&self, at: LocalTime) -> Instant {
        #[cfg(feature = "test-util")]
        if let Some(clock) = &self.test_clock {
            return clock.instant(at);
        }
        let since = at.since(LocalTime(self.ahead.load(Ordering::Relaxed)));
        clock::after(self.start, since)
    }
}

fn blocked(block: &Block, now: LocalTime) -> Blocked {
    let Block { until, named, reason } = *block;
    Blocked { reason, until: named.system(), remaining: until.since(now) }
}

fn new_member(now: LocalTime, shared: bool) -> Member {
    Member::new(MemberId::random(), now, clock::wall().into(), shared)
}

impl Permit<'_> {
    /// Returns the call's place in the queue, which a retry keeps.
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// Returns whether the call waited for it.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Records the head of the response. Returns the block that it requests.
    pub(crate) fn observe(mut self, status: StatusCode, headers: &HeaderMap) -> Option<Blocked> {
        let reservation = self.reservation.take()?;
        self.limiter.change(|member, now| {
            let head = ResponseHead::read(status, headers, member.service_time(now));
            let block = member.record_response(reservation, now, &head, jitter)?;
            Some(blocked(&block, now))
        })
    }

    /// Records that the request cannot have reached the service.
    pub(crate) fn not_sent(mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.limiter.change(|member, _| member.release(reservation));
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.limiter.change(|member, now| member.record_lost(reservation, now));
        }
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.grant.close();
        let unused = self.grant.try_recv();
        let (now, mut state) = self.limiter.lock();
        let was_waiting = state.lines.leave(&self.request.policy, self.place);
        if !was_waiting && unused.is_err() {
            return;
        }
        if let Ok(reservation) = unused {
            state.member.release(reservation);
        }
        self.limiter.grant(&mut state, now);
        self.limiter.plan_update(now, state);
    }
}
