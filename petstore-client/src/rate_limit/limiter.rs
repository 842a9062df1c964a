//! The limiter of one key: calls acquire a permit, send, and observe the response.
//!
//! The ledger decides. Every change of the ledger also grants permits, so no waiter depends on another
//! one being polled. A grant lapses if its waiter is not polled in time. Where members share the
//! ledger, any caller that finds an update due starts it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, Weak};
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
// Under the model checker, each lock is a point where another task may run.
#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use super::queue::{Place, Queue};
use super::quota::clock::{LocalTime, micros};
use super::quota::decision::{Decision, Policy};
use super::quota::outstanding::Reservation;
use super::quota::reading::{Block, ResponseHead};
use super::shared::member::Member;
use super::shared::slot::MemberId;
use super::shared::store::{SharedRecord, StoreError};
use super::view::{Blocked, Priority, QuotaWindow, RateLimits, WaitReason};
use crate::backoff::jitter;
use crate::clock;

/// How often a waiter checks for leases that are over: neither their tasks nor the first in line may be
/// polled. In a long queue, the others check less often.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const POLL_INTERVAL_PER_WAITER: Duration = Duration::from_micros(100);
/// How soon a call that may wait no longer checks whether an update of the shared record has brought a
/// grant.
const ANSWER_INTERVAL: Duration = Duration::from_millis(5);

/// A call's request for a permit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acquire {
    /// Its place from an earlier attempt.
    pub(crate) place: Option<u64>,
    pub(crate) priority: Priority,
    pub(crate) policy: Policy,
    /// The latest instant to which a block may hold it back.
    pub(crate) latest: Instant,
    /// Whether to send whatever is known, because a person asked for it.
    pub(crate) forced: bool,
    /// How long the request may last once it is sent.
    pub(crate) lease: Duration,
}

/// Why a call waits, and until when if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) reason: WaitReason,
    pub(crate) blocked: Option<Blocked>,
}

/// The limiter of one key at one origin.
pub(crate) struct Limiter {
    pub(super) this: Weak<Self>,
    start: Instant,
    /// How far the store's clock is ahead of this process's, in microseconds.
    pub(super) ahead: AtomicI64,
    state: Mutex<State>,
    /// Wakes all waiters when the block changes, which may be too long for some, or a plan is lost.
    pub(super) changed: Notify,
    pub(super) shared: Option<SharedRecord>,
    #[cfg(feature = "test-util")]
    test_clock: Option<super::time::TestClock>,
}

/// The ledger and the queue.
#[derive(Default)]
pub(crate) struct State {
    pub(super) member: Member,
    pub(super) queue: Queue,
    /// The last block that waiters were woken for.
    announced: Option<Block>,
    /// The policy of the last call.
    pub(super) policy: Policy,
    /// When the update in progress began, and when the next one is planned.
    pub(super) updating: Option<LocalTime>,
    pub(super) planned: Option<LocalTime>,
    /// The store's problem, and how often it has changed.
    pub(super) problem: Option<String>,
    pub(super) changes: u64,
}

pub(crate) type StateGuard<'s> = MutexGuard<'s, State>;

/// Numbers the places in all queues: a call may continue in another key's queue.
static PLACES: AtomicU64 = AtomicU64::new(1);

/// The right to send one request now. If dropped, its request is unresolved.
#[must_use = "a permit is for sending a request"]
pub(crate) struct Permit<'l> {
    limiter: &'l Limiter,
    reservation: Option<Reservation>,
    /// The call's place in the queue, which a retry keeps.
    pub(crate) place: u64,
    /// Whether the call waited in the queue.
    pub(crate) has_waited: bool,
}

/// A place in the queue, left when dropped.
struct InLine<'l> {
    limiter: &'l Limiter,
    request: Acquire,
    place: Place,
    grant: oneshot::Receiver<Reservation>,
}

impl Limiter {
    pub(crate) fn new(shared: Option<SharedRecord>) -> Arc<Self> {
        let (id, wall) = (MemberId::random(), clock::wall().into());
        let member = Member::new(id, LocalTime(0), wall, shared.is_some());
        let state = State {
            member,
            ..State::default()
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

    /// Creates a limiter on a test's clock.
    #[cfg(feature = "test-util")]
    pub(crate) fn on_test_clock(clock: super::time::TestClock) -> Arc<Self> {
        let limiter = Self::new(None);
        let mut limiter = Arc::into_inner(limiter).expect("nobody else has it yet");
        let state = limiter
            .state
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let wall = clock.wall().into();
        state.member = Member::new(MemberId::random(), LocalTime(0), wall, false);
        limiter.test_clock = Some(clock);
        // Without a shared record, nothing needs `this`.
        Arc::new(limiter)
    }

    /// Waits until a request may be sent. Fails as soon as a block is known to last longer than
    /// the call may wait. Reports each wait to `report`.
    pub(crate) async fn acquire(
        &self,
        request: Acquire,
        mut report: impl FnMut(Wait),
    ) -> Result<Permit<'_>, Blocked> {
        let number = request
            .place
            .unwrap_or_else(|| PLACES.fetch_add(1, Ordering::Relaxed));
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
            let wake = self
                .test_clock
                .as_ref()
                .map_or(wake, |clock| clock.look(wake));
            let is_reported = |wait: &Wait| match wait.blocked {
                Some(_) => is_first || is_first_look,
                // Most responses come soon.
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
                biased; // A grant that has arrived is taken.
                grant = &mut line.grant => match grant {
                    Ok(reservation) if self.start(reservation, request.lease) => {
                        return Ok(self.permit(reservation, place, true));
                    }
                    // It has lapsed: this task was not polled in time.
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

    /// Returns what is known, for programs and people.
    pub(crate) fn view(&self, policy: &Policy) -> RateLimits {
        if self.shared.is_some() && !self.lock().1.member.has_read_record() {
            self.start_update();
        }
        let (now, state) = self.lock();
        let (member, service_now) = (&state.member, state.member.service_time(now));
        let open = member
            .ledger
            .windows
            .iter()
            .filter(|window| window.reset > service_now);
        let windows = open.map(|window| QuotaWindow {
            quota: window.quota,
            limit: window.limit,
            remaining: member.left_in(window),
            reset: window.reset.system(),
        });
        let (wait_reason, blocked) = match member.decide(now, policy) {
            // A call would get reservations by an update.
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
            waiting: state.queue.waiting(),
            throttled: member.throttled,
            age: member.ledger.seen_at.map(|at| now.since(at)),
            shared: self.shared_status(&state, now),
        }
    }

    /// Records that the last 429 was a ban.
    pub(crate) fn record_ban(&self) {
        self.change(|member, _| member.ledger.record_ban());
    }

    /// Forgets all that is known, in the shared record too.
    pub(crate) async fn forget(&self) -> Result<(), StoreError> {
        self.change(|member, now| member.forget(now, clock::wall().into()));
        match &self.shared {
            Some(SharedRecord { store, key }) => store.forget(Some(key)).await,
            None => Ok(()),
        }
    }

    /// Returns when nothing known here matters any more.
    pub(super) fn idle_from(&self) -> Instant {
        let at = self.lock().1.member.idle_from();
        self.instant(at)
    }

    /// Acquires a permit at once, if one is free and nobody waits for it.
    fn try_acquire(&self, request: Acquire, place: Place) -> Option<Permit<'_>> {
        let (now, mut state) = self.lock();
        state.policy = request.policy;
        let State { member, queue, .. } = &mut *state;
        let probe = match member.decide(now, &request.policy) {
            _ if request.forced && !member.is_probing(now) => Some(true),
            Decision::Send { probe } if queue.find(&request.policy, place).1 => Some(probe),
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
        let grant = self.lock().1.queue.join(&request.policy, place);
        InLine {
            limiter: self,
            request,
            place,
            grant,
        }
    }

    /// Grants what may be sent. Returns what a waiting call waits for, whether it is the first, and when
    /// to check again.
    fn look(&self, line: &InLine<'_>) -> Result<(Option<Wait>, bool, Instant), Blocked> {
        let (now, mut state) = self.lock();
        state.member.expire(now);
        self.grant(&mut state, now);
        let waiters = u32::try_from(state.queue.waiting()).unwrap_or(u32::MAX);
        let InLine { request, place, .. } = line;
        let (waits, is_first) = state.queue.find(&request.policy, *place);
        let instant = clock::now();
        let mut wake = instant + POLL_INTERVAL;
        let mut wait = None;
        // A call that is no longer in the queue has a grant.
        match state.member.decide(now, &request.policy) {
            Decision::WaitUntil(block) if waits => {
                let blocked = blocked(&block, now);
                wake = self.instant(block.until);
                if wake > request.latest {
                    return Err(blocked);
                }
                wait = Some(Wait {
                    reason: WaitReason::Blocked,
                    blocked: Some(blocked),
                });
            }
            Decision::WaitForResponse(reason) if waits => {
                if reason == WaitReason::Members {
                    match state.member.blocked_by_members(now) {
                        Some(block) if request.latest <= instant => {
                            return Err(blocked(&block, now));
                        }
                        _ => wake = request.latest.clamp(instant + ANSWER_INTERVAL, wake),
                    }
                }
                wait = Some(Wait {
                    reason,
                    blocked: None,
                });
            }
            _ => {}
        }
        if !is_first {
            wake += POLL_INTERVAL_PER_WAITER * waiters;
        } else if let Some(end) = state.member.requests.first_end() {
            wake = wake.min(self.instant(end));
        }
        self.plan_update(now, state);
        Ok((wait, is_first, wake))
    }

    /// Changes what is known, and grants what may be sent then.
    fn change<T>(&self, change: impl FnOnce(&mut Member, LocalTime) -> T) -> T {
        let (now, mut state) = self.lock();
        let result = change(&mut state.member, now);
        self.after_change(now, state);
        result
    }

    pub(super) fn after_change(&self, now: LocalTime, mut state: StateGuard<'_>) {
        if !state.queue.is_empty() {
            state.member.expire(now);
            self.grant(&mut state, now);
        }
        self.plan_update(now, state);
    }

    fn grant(&self, state: &mut State, now: LocalTime) {
        let State {
            member,
            queue,
            announced,
            ..
        } = state;
        if let Some(Decision::WaitUntil(block)) = queue.grant(member, now)
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
        Permit {
            limiter: self,
            reservation: Some(reservation),
            place: place.1,
            has_waited,
        }
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
    let Block {
        until,
        named,
        reason,
    } = *block;
    Blocked {
        reason,
        until: named.system(),
        remaining: until.since(now),
    }
}

impl Permit<'_> {
    /// Records the head of the response. Returns the block if it is a 429.
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
            self.limiter
                .change(|member, now| member.record_lost(reservation, now));
        }
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.grant.close();
        let unused = self.grant.try_recv();
        let (now, mut state) = self.limiter.lock();
        let was_waiting = state.queue.leave(&self.request.policy, self.place);
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
