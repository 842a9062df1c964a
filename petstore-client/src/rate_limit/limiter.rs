//! The limiter of one key: calls acquire a permit, send, and observe the response.
//!
//! The engine decides who may send. Every change of the engine also grants permits, so no waiter
//! depends on another one being polled. A grant is a reservation in a waiter's channel; it lapses
//! if the waiter is not polled in time. Where members share a record, an update may be due: then
//! any caller that notices it starts the update.

use std::sync::atomic::{AtomicU64, Ordering};
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

use super::logged::LoggedBlocks;
use super::queue::{Place, Queue};
use super::quota::clock::{LocalTime, ServiceTime};
use super::quota::decision::Decision;
use super::quota::outstanding::Reservation;
use super::quota::policy::Policy;
use super::quota::reading::{Block, ResponseHead};
use super::shared::engine::Engine;
use super::shared::exchange::{Exchange, ExchangeState};
use super::shared::store::StoreError;
use super::time::{Clock, TimeSource};
use super::view::{Blocked, Priority, QuotaWindow, RateLimits, SharedStatus, WaitReason};
use crate::clock;

/// How often a waiter checks for expired leases. It cannot rely on anybody else: the tasks that
/// hold the leases may not be polled, and neither may the first in line. In a long queue, all but
/// the first check less often.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const POLL_INTERVAL_PER_WAITER: Duration = Duration::from_micros(100);
/// How often the first in line checks whether the machine was suspended. The runtime's timers stand
/// still during a suspension.
const SUSPENSION_INTERVAL: Duration = Duration::from_secs(5);
/// How soon a call whose wait is over (`latest`) checks once more whether an update of the shared
/// record has brought a grant.
const ANSWER_INTERVAL: Duration = Duration::from_millis(5);

/// How much the end that the service named may differ from the end by the local clock, only because
/// the clocks differ.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// A call's request for a permit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acquire {
    /// The call's place, if it has one from an earlier attempt.
    pub(crate) place: Option<u64>,
    pub(crate) priority: Priority,
    pub(crate) policy: Policy,
    /// The latest instant until which a block may delay the call.
    pub(crate) latest: Instant,
    /// Whether to send even if the limits are known to be used up: the user asked for it.
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
    this: Weak<Self>,
    clock: Clock,
    state: Mutex<State>,
    /// Wakes all waiters. Used when the block changes, because it may be too long for some of them,
    /// and when the planned update was lost with its runtime.
    changed: Notify,
    /// The record that processes share, if any.
    exchange: Option<Arc<Exchange>>,
    logged: Mutex<LoggedBlocks>,
}

struct State {
    engine: Engine,
    queue: Queue,
    /// The last block that waiters were woken for.
    announced: Option<Block>,
    /// The policy of the last call.
    policy: Policy,
    progress: ExchangeState,
}

type StateGuard<'s> = MutexGuard<'s, State>;

/// Numbers the places. All queues share it, because a call may continue in another key's queue.
static PLACES: AtomicU64 = AtomicU64::new(1);

/// The right to send one request now. If it is dropped without an outcome, its request counts as
/// lost.
#[must_use = "a permit is for sending a request"]
pub(crate) struct Permit<'l> {
    limiter: &'l Limiter,
    reservation: Option<Reservation>,
    place: Place,
    has_waited: bool,
}

/// A place in the queue, left when dropped.
struct InLine<'l> {
    limiter: &'l Limiter,
    request: Acquire,
    place: Place,
    grant: oneshot::Receiver<Reservation>,
}

impl Limiter {
    /// Creates a limiter that shares nothing with other processes.
    pub(crate) fn new(source: TimeSource) -> Arc<Self> {
        Self::with_engine_of(source, None, Engine::new)
    }

    /// Creates a limiter with the engine that `create` returns.
    pub(crate) fn with_engine_of(
        source: TimeSource,
        exchange: Option<Arc<Exchange>>,
        create: impl FnOnce(LocalTime, ServiceTime) -> Engine,
    ) -> Arc<Self> {
        let clock = Clock::start(source);
        let engine = create(LocalTime(0), clock.wall().into());
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            clock,
            state: Mutex::new(State {
                engine,
                queue: Queue::default(),
                announced: None,
                policy: Policy::default(),
                progress: ExchangeState::default(),
            }),
            changed: Notify::new(),
            exchange,
            logged: Mutex::new(LoggedBlocks::default()),
        })
    }

    /// Waits until a request may be sent. Fails as soon as a block is known that lasts longer than
    /// the call may wait. Passes its waits to `report`: a block at once, another wait only if it
    /// lasts and the call is first in line.
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
            let is_reported = match wait {
                None => false,
                Some(wait) if wait.blocked.is_some() => is_first || is_first_look,
                // Not at the first look: most responses arrive before the second.
                Some(_) => is_first && !is_first_look,
            };
            if let Some(wait) = wait
                && is_reported
            {
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
                    // The reservation has lapsed: this task was not polled in time.
                    _ => {
                        drop(line);
                        line = self.join(request, place);
                    }
                },
                () = changed => {}
                () = sleep_until(wake) => {}
                () = self.clock.moved() => self.changed.notify_waiters(),
            }
        }
    }

    /// Returns a snapshot of what is known, for display.
    pub(crate) fn view(&self, policy: &Policy) -> RateLimits {
        self.read_record();
        let (now, state) = self.lock();
        let engine = &state.engine;
        let (local, ledger) = (engine.local(), engine.local().ledger());
        let service_now = ledger.service_time(now);
        let (mut windows, mut ended) = (Vec::new(), Vec::new());
        for window in ledger.windows() {
            let mut view = QuotaWindow {
                quota: window.quota(),
                limit: window.limit(),
                remaining: window.limit(),
                reset: window.reset().system(),
            };
            if window.reset() > service_now {
                view.remaining = engine.left_in(window);
                windows.push(view);
            } else {
                ended.push(view);
            }
        }
        let (wait_reason, blocked) = match engine.decide(now, policy) {
            // A new call would send now, or get a reservation by updating the record.
            Decision::Send { .. } | Decision::WaitForResponse(WaitReason::Members) => (None, None),
            Decision::WaitUntil(block) => {
                let blocked = blocked(engine, &block, now);
                (Some(WaitReason::Blocked), Some(blocked))
            }
            Decision::Pause(_) => (Some(WaitReason::Members), None),
            Decision::WaitForResponse(reason) => (Some(reason), None),
        };
        RateLimits {
            windows,
            ended,
            service_time: Some(service_now.system()),
            blocked,
            wait_reason,
            in_flight: u32::try_from(local.in_flight()).unwrap_or(u32::MAX),
            unresolved: u32::try_from(local.unresolved()).unwrap_or(u32::MAX),
            waiting: state.queue.waiting(),
            throttled: local.throttled(),
            age: ledger.age(now),
            shared: self.status(&state, now),
        }
    }

    /// Records that the last 429 was a ban.
    pub(crate) fn record_ban(&self) {
        self.change(|engine, _| engine.record_ban());
    }

    /// Returns how many blocks of the key were logged.
    pub(crate) fn logged_blocks(&self) -> u64 {
        self.logged().count()
    }

    /// Returns whether to log a 429, because its block was not logged. `logged` is the number of logged
    /// blocks when the request was sent.
    pub(crate) fn log_block(&self, blocked: Blocked, logged: u64) -> bool {
        self.logged().add(blocked, logged)
    }

    fn logged(&self) -> MutexGuard<'_, LoggedBlocks> {
        self.logged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all that is known, here and in the shared record.
    pub(crate) async fn forget(&self) -> Result<(), StoreError> {
        self.change(|engine, now| engine.forget(now, clock::wall().into()));
        match &self.exchange {
            Some(exchange) => exchange.forget().await,
            None => Ok(()),
        }
    }

    /// Returns when everything that is known has expired.
    pub(super) fn idle_from(&self) -> Instant {
        let at = self.lock().1.engine.local().idle_from();
        self.clock.instant(at)
    }

    /// Acquires a permit at once, if one is free and nobody waits for it.
    fn try_acquire(&self, request: Acquire, place: Place) -> Option<Permit<'_>> {
        let (now, mut state) = self.lock_awake(false);
        state.policy = request.policy;
        let State { engine, queue, .. } = &mut *state;
        let probe = match engine.decide(now, &request.policy) {
            _ if request.forced && !engine.is_probing(now) => Some(true),
            Decision::Send { probe } if queue.is_first(&request.policy, place) => Some(probe),
            _ => None,
        };
        let reservation = probe.map(|probe| {
            let reservation = engine.reserve(now, probe, &request.policy);
            engine.start(reservation, now, request.lease);
            reservation
        });
        self.follow(now, state);
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

    /// Grants what may be sent. Returns what a waiting call waits for, whether it is the first of
    /// its line, and when to look again. Fails if a block lasts too long for the call.
    fn look(&self, line: &InLine<'_>) -> Result<(Option<Wait>, bool, Instant), Blocked> {
        let (now, mut state) = self.lock_awake(true);
        state.engine.expire(now);
        self.grant(&mut state, now);
        let InLine { request, place, .. } = line;
        let waits = state.queue.contains(&request.policy, *place);
        let is_first = state.queue.is_first(&request.policy, *place);
        let runtime_now = clock::now();
        let mut wake = runtime_now + POLL_INTERVAL;
        let mut wait = None;
        // A call that is no longer in the queue has a grant.
        match state.engine.decide(now, &request.policy) {
            Decision::WaitUntil(block) if waits => {
                let blocked = blocked(&state.engine, &block, now);
                wake = self.clock.instant(block.until);
                if wake > request.latest {
                    return Err(blocked);
                }
                wait = Some(Wait {
                    reason: WaitReason::Blocked,
                    blocked: Some(blocked),
                });
            }
            Decision::Pause(until) if waits => {
                wake = wake.min(self.clock.instant(until));
                wait = Some(Wait {
                    reason: WaitReason::Members,
                    blocked: None,
                });
            }
            Decision::WaitForResponse(reason) if waits => {
                if reason == WaitReason::Members {
                    match state.engine.blocked_by_members(now) {
                        Some(block) if request.latest <= runtime_now => {
                            return Err(blocked(&state.engine, &block, now));
                        }
                        _ => wake = request.latest.clamp(runtime_now + ANSWER_INTERVAL, wake),
                    }
                }
                wait = Some(Wait {
                    reason,
                    blocked: None,
                });
            }
            _ => {}
        }
        // The first in line also watches for suspensions and ended leases, for all others.
        if is_first {
            wake = wake.min(runtime_now + SUSPENSION_INTERVAL);
            if let Some(end) = state.engine.local().first_lease_end() {
                wake = wake.min(self.clock.instant(end));
            }
        } else {
            let waiters = u32::try_from(state.queue.waiting()).unwrap_or(u32::MAX);
            wake += POLL_INTERVAL_PER_WAITER * waiters;
        }
        self.follow(now, state);
        Ok((wait, is_first, wake))
    }

    /// Applies a change to the engine, and grants what may be sent after it.
    fn change<T>(&self, change: impl FnOnce(&mut Engine, LocalTime) -> T) -> T {
        let (now, mut state) = self.lock();
        let result = change(&mut state.engine, now);
        self.after_change(now, state);
        result
    }

    fn after_change(&self, now: LocalTime, mut state: StateGuard<'_>) {
        if !state.queue.is_empty() {
            state.engine.expire(now);
            self.grant(&mut state, now);
        }
        self.follow(now, state);
    }

    fn grant(&self, state: &mut State, now: LocalTime) {
        let State {
            engine,
            queue,
            announced,
            ..
        } = state;
        if let Some(Decision::WaitUntil(block)) = queue.grant(engine, now)
            && *announced != Some(block)
        {
            *announced = Some(block);
            self.changed.notify_waiters();
        }
    }

    fn start(&self, reservation: Reservation, lease: Duration) -> bool {
        self.change(|engine, now| engine.start(reservation, now, lease))
    }

    fn permit(&self, reservation: Reservation, place: Place, has_waited: bool) -> Permit<'_> {
        Permit {
            limiter: self,
            reservation: Some(reservation),
            place,
            has_waited,
        }
    }

    fn lock(&self) -> (LocalTime, StateGuard<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        if let Some(exchange) = &self.exchange {
            let State {
                engine, progress, ..
            } = &mut *state;
            exchange.notice_fork(engine, progress, now);
        }
        (now, state)
    }

    /// Locks the state, and detects a suspension of the machine. Checks for one now if `must` is
    /// set, otherwise only at intervals.
    fn lock_awake(&self, must: bool) -> (LocalTime, StateGuard<'_>) {
        let (now, mut state) = self.lock();
        if !self.clock.notice_suspension(must) {
            return (now, state);
        }
        let now = self.clock.now();
        state.engine.resume();
        state.engine.expire(now);
        (now, state)
    }
}

/// The record that processes share.
impl Limiter {
    /// Reports to the record and reads it now, because the process may end.
    pub(crate) async fn synchronize(&self) {
        if let Some(exchange) = &self.exchange {
            exchange.synchronize(self).await;
        }
    }

    /// Returns the store's status if it has changed since `seen`, and updates `seen`.
    pub(crate) fn store_status_change(&self, seen: &AtomicU64) -> Option<SharedStatus> {
        let exchange = self.exchange.as_ref()?;
        let (now, state) = self.lock();
        if exchange.has_changed(&state.progress, seen) {
            self.status(&state, now)
        } else {
            None
        }
    }

    /// Starts the first update of the record, if this process has not read it yet.
    fn read_record(&self) {
        let Some(exchange) = &self.exchange else {
            return;
        };
        let has_read = exchange.has_read(&self.lock().1.engine);
        if !has_read {
            exchange.start(&self.this);
        }
    }

    /// Unlocks the state after a change, and starts or plans the update that is due, if any.
    fn follow(&self, now: LocalTime, mut state: StateGuard<'_>) {
        let Some(exchange) = &self.exchange else {
            return;
        };
        let State {
            engine,
            queue,
            progress,
            ..
        } = &mut *state;
        let due = exchange.plan(engine, progress, queue.wanted(engine), now);
        drop(state);
        exchange.run(&self.this, due);
    }

    fn status(&self, state: &State, now: LocalTime) -> Option<SharedStatus> {
        let exchange = self.exchange.as_ref()?;
        exchange.status(&state.engine, &state.progress, now)
    }
}

/// What an exchange with a store needs.
#[cfg(feature = "shared-limits")]
impl Limiter {
    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Gives access to the engine at a time, and to the progress of the exchange.
    pub(super) fn with_engine<T>(
        &self,
        access: impl FnOnce(&mut Engine, &mut ExchangeState, LocalTime) -> T,
    ) -> T {
        let (now, mut state) = self.lock();
        let State {
            engine, progress, ..
        } = &mut *state;
        access(engine, progress, now)
    }

    /// Returns how many calls wait for the record, and the policy of the last call.
    pub(super) fn demand(&self) -> (u64, Policy) {
        let (_, state) = self.lock();
        (state.queue.wanted(&state.engine), state.policy)
    }

    /// Grants what may be sent after an update.
    pub(super) fn after_update(&self) {
        let (now, state) = self.lock();
        self.after_change(now, state);
    }

    pub(super) fn wake_all(&self) {
        self.changed.notify_waiters();
    }
}

/// Returns a block as callers see it. It has the end that the service named. The limiter itself
/// ends a longer block after 25 hours, with a probe.
fn blocked(engine: &Engine, block: &Block, now: LocalTime) -> Blocked {
    let Block {
        until,
        named,
        reason,
    } = *block;
    let own = until.since(now);
    let told = named.since(engine.local().ledger().service_time(now));
    Blocked {
        reason,
        until: named.system(),
        remaining: match told > own.saturating_add(CLOCK_TOLERANCE) {
            true => told,
            false => own,
        },
    }
}

impl Permit<'_> {
    /// Returns the call's place in the queue, which a retry keeps.
    pub(crate) fn place(&self) -> u64 {
        self.place.1
    }

    /// Returns whether the call waited in the queue.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Records the head of the response. Returns the block if it is a 429.
    pub(crate) fn observe(mut self, status: StatusCode, headers: &HeaderMap) -> Option<Blocked> {
        let reservation = self.reservation.take()?;
        self.limiter.change(|engine, now| {
            let service_now = engine.local().ledger().service_time(now);
            let head = ResponseHead::read(status, headers, service_now);
            let block = engine.record_response(reservation, now, &head)?;
            Some(blocked(engine, &block, now))
        })
    }

    /// Records that the request cannot have reached the service.
    pub(crate) fn not_sent(mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.limiter.change(|engine, _| engine.release(reservation));
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.limiter
                .change(|engine, now| engine.record_lost(reservation, now));
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
            state.engine.release(reservation);
        }
        self.limiter.grant(&mut state, now);
        self.limiter.follow(now, state);
        // This waiter may have been the one that watches a test's clock. Another one must take
        // over.
        if self.limiter.clock.is_of_service() {
            self.limiter.changed.notify_waiters();
        }
    }
}
