//! The limiter of one key: calls acquire a permit, send, and show what came.
//!
//! All deciding is the ledger's. Whoever changes it grants what may be sent then, so that no waiter
//! depends on another one being run: a waiter that is not run in time loses its grant, which lapses.
//! Where members share the ledger, whoever finds an update due makes it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, Weak};
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Waker};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
// Under the model checker each lock is a point where another task may come first.
#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::clock::{LocalTime, ServiceTime, micros};
use super::decision::{Decision, Policy};
use super::ledger::{Block, Ledger, ResponseHead};
use super::member::Member;
use super::outstanding::Reservation;
use super::queue::{Lines, Place};
use super::sharing::MemberId;
use super::snapshot::{Blocked, Priority, QuotaWindow, RateLimits, SharedStatus, WaitReason};
use super::store::{
    AnyStore, Change, MAX_RECORD, RecordKey, StoreError, StoreTime, decode, encode,
};
use super::window::Figure;
use crate::backoff::{jitter, random_part};
use crate::clock;
use crate::http::headers;

/// How often a waiter looks whether a lease is over: a task that holds it may not be run, and
/// neither may the first in line. A long line looks less often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const LOOK_INTERVAL_PER_WAITER: Duration = Duration::from_micros(100);
/// How soon a call looks whether an update of the record that members share has brought something,
/// once it may not wait any longer.
const ANSWER_INTERVAL: Duration = Duration::from_millis(5);
/// A reset that is further off cannot be right: quotas are counted by the minute and the day, and
/// one by the month is thinkable.
const MAX_WINDOW: Duration = Duration::from_secs(32 * 24 * 3600);
/// How far two measurements of the difference between clocks are apart that is none, in microseconds.
const MAX_ROUNDING: u64 = 1_000;
/// No call waits longer for a store.
const UPDATE_TIMEOUT: Duration = Duration::from_millis(800);
/// An update that takes so much longer is not run any more: its runtime stands still.
const STALE_UPDATE: Duration = Duration::from_secs(2);

/// What a call asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acquire {
    /// Its place from the first time it stood in line.
    pub(crate) place: Option<u64>,
    pub(crate) priority: Priority,
    pub(crate) policy: Policy,
    /// The latest instant to which a block may hold it back.
    pub(crate) latest: Instant,
    /// Whether it is sent whatever is known: a person asked for it.
    pub(crate) forced: bool,
}

/// Why a call waits, and until when, if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) reason: WaitReason,
    pub(crate) blocked: Option<Blocked>,
}

/// What all calls with one key to one origin pass.
#[derive(Debug)]
pub(crate) struct Limiter {
    this: Weak<Self>,
    start: Instant,
    state: Mutex<State>,
    /// Wakes all waiters: another block holds them back, which may be too long for some.
    changed: Notify,
    shared: Option<SharedRecord>,
    #[cfg(feature = "test-util")]
    test_clock: Option<super::TestClock>,
}

#[derive(Debug)]
struct State {
    member: Member,
    lines: Lines,
    /// The last block that waiters were woken for.
    announced: Option<Block>,
    /// The policy of the last call.
    policy: Policy,
    /// Since when an update of the record is made, and when the next one is planned.
    updating: Option<LocalTime>,
    planned: Option<LocalTime>,
    /// What is wrong with the store, and how often that has changed.
    problem: Option<String>,
    changes: u64,
}

/// The record of a key.
pub(crate) struct SharedRecord {
    pub(super) store: Arc<dyn AnyStore>,
    pub(super) key: RecordKey,
}

/// Numbers the places in all lines: a call may go on in another key's line.
static PLACES: AtomicU64 = AtomicU64::new(1);

enum Entry<'l> {
    Permit(Permit<'l>),
    Blocked(Block),
    Line(InLine<'l>),
}

/// The right to send one request. Dropped before it was sent, it is given back; dropped after, its
/// request is unresolved.
#[derive(Debug)]
#[must_use = "a permit is for sending a request"]
pub(crate) struct Permit<'l> {
    limiter: &'l Limiter,
    reservation: Option<Reservation>,
    place: u64,
    has_waited: bool,
}

/// A place in line, left when dropped.
struct InLine<'l> {
    limiter: &'l Limiter,
    policy: Policy,
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
            state: Mutex::new(state),
            changed: Notify::new(),
            shared,
            #[cfg(feature = "test-util")]
            test_clock: None,
        })
    }

    /// Creates a limiter that goes by a clock of a test.
    #[cfg(feature = "test-util")]
    pub(crate) fn on_test_clock(clock: super::TestClock) -> Arc<Self> {
        let limiter = Self::new(None);
        let mut limiter = Arc::into_inner(limiter).expect("nobody else has it yet");
        let state = limiter.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let wall = ServiceTime::from(clock.wall());
        state.member = Member::new(MemberId::random(), LocalTime(0), wall, false);
        limiter.test_clock = Some(clock);
        Arc::new_cyclic(|this| Self { this: Weak::clone(this), ..limiter })
    }

    /// Waits until a request may be sent. Fails as soon as a block is known to last longer than
    /// the call may wait. `report` is told of the waits.
    pub(crate) async fn acquire(
        &self,
        request: Acquire,
        mut report: impl FnMut(Wait),
    ) -> Result<Permit<'_>, Blocked> {
        let mut line = match self.enter(request) {
            Entry::Permit(permit) => return Ok(permit),
            Entry::Blocked(block) => return Err(self.blocked(&block)),
            Entry::Line(line) => line,
        };
        let mut reported = None;
        let mut looks = 0;
        loop {
            let changed = self.changed.notified();
            let (is_first, decision, kept, wake) = self.look(&line, request.latest);
            #[cfg(feature = "test-util")]
            let wake = self.test_clock.as_ref().map_or(wake, |clock| clock.look(wake));
            let wait = match decision {
                Some(Decision::WaitUntil(block)) => {
                    let blocked = self.blocked(&block);
                    if self.instant(block.until) > request.latest {
                        return Err(blocked);
                    }
                    Some((WaitReason::Blocked, Some(blocked)))
                }
                Some(Decision::WaitForResponse(reason)) if looks > 0 => Some((reason, None)),
                _ => None,
            };
            if let Some(block) = kept.filter(|_| request.latest <= clock::now()) {
                return Err(self.blocked(&block));
            }
            if let Some((reason, blocked)) = wait.filter(|_| is_first || looks == 0) {
                let key = (reason, blocked.map(|blocked| blocked.until));
                if reported != Some(key) {
                    reported = Some(key);
                    report(Wait { reason, blocked });
                }
            }
            looks += 1;
            tokio::select! {
                biased; // A grant that has come is taken.
                grant = &mut line.grant => {
                    if let Ok(reservation) = grant {
                        return Ok(self.permit(reservation, line.place.1, true));
                    }
                }
                () = changed => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Returns what is known, for programs and people.
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
            // It would be asked for.
            Decision::Send { .. } | Decision::WaitForResponse(WaitReason::Members) => (None, None),
            Decision::WaitUntil(block) => {
                (Some(WaitReason::Blocked), Some(blocked_at(&block, now)))
            }
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
            shared: self.shared.as_ref().map(|shared| shared.status(&state, now)),
        }
    }

    /// Records that the last 429 was a ban.
    pub(crate) fn record_ban(&self) {
        self.change(|member, _| member.record_ban());
    }

    /// Forgets all that is known; the record that members share as well.
    pub(crate) async fn forget(&self) -> Result<(), StoreError> {
        self.change(|member, now| *member = new_member(now, self.shared.is_some()));
        match &self.shared {
            Some(SharedRecord { store, key }) => store.forget(Some(key)).await,
            None => Ok(()),
        }
    }

    /// Returns when nothing that is known here matters any more.
    pub(super) fn idle_from(&self) -> Instant {
        let at = self.lock().1.member.idle_from();
        self.instant(at)
    }

    fn enter(&self, request: Acquire) -> Entry<'_> {
        let Acquire { place, priority, policy, latest, forced } = request;
        let (now, mut state) = self.lock();
        let place =
            Place(priority, place.unwrap_or_else(|| PLACES.fetch_add(1, Ordering::Relaxed)));
        let (_, is_first) = state.lines.find(&policy, place);
        let entry = match state.member.decide(now, &policy) {
            _ if forced && !state.member.is_probing(now) => {
                Entry::Permit(self.permit(state.member.reserve(now, true), place.1, false))
            }
            Decision::Send { probe } if is_first => {
                Entry::Permit(self.permit(state.member.reserve(now, probe), place.1, false))
            }
            Decision::WaitUntil(block) if self.instant(block.until) > latest => {
                Entry::Blocked(block)
            }
            _ => {
                let grant = state.lines.join(&policy, place);
                Entry::Line(InLine { limiter: self, policy, place, grant })
            }
        };
        if self.shared.is_some() {
            state.policy = policy;
            self.plan_update(now, state);
        }
        entry
    }

    /// Grants what may be sent. Returns whether a place is the first in its line, what it waits for,
    /// and when to look again.
    fn look(
        &self,
        line: &InLine<'_>,
        latest: Instant,
    ) -> (bool, Option<Decision>, Option<Block>, Instant) {
        let (now, mut state) = self.lock();
        state.member.expire(now);
        self.grant(&mut state, now);
        let waiters = u32::try_from(state.lines.waiting()).unwrap_or(u32::MAX);
        // One that is in line no more has a grant.
        let (waits, is_first) = state.lines.find(&line.policy, line.place);
        let decision = waits.then(|| state.member.decide(now, &line.policy));
        let wake = match decision {
            Some(Decision::WaitUntil(block)) => self.instant(block.until),
            Some(Decision::WaitForResponse(WaitReason::Members)) => {
                let soon = clock::now() + ANSWER_INTERVAL;
                latest.clamp(soon, soon + LOOK_INTERVAL)
            }
            _ if is_first => {
                let next = state.member.first_lease_end().map(|end| self.instant(end));
                let latest = clock::now() + LOOK_INTERVAL;
                next.map_or(latest, |next| next.min(latest))
            }
            _ => clock::now() + LOOK_INTERVAL + LOOK_INTERVAL_PER_WAITER * waiters,
        };
        let is_kept = decision == Some(Decision::WaitForResponse(WaitReason::Members));
        let kept = state.member.kept_until(now).filter(|_| is_kept);
        self.plan_update(now, state);
        (waits && is_first, decision, kept, wake)
    }

    /// Changes what is known, and grants what may be sent then.
    fn change<T>(&self, change: impl FnOnce(&mut Member, LocalTime) -> T) -> T {
        let (now, mut state) = self.lock();
        let result = change(&mut state.member, now);
        self.go_on(now, state);
        result
    }

    fn go_on(&self, now: LocalTime, mut state: MutexGuard<'_, State>) {
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

    fn permit(&self, reservation: Reservation, place: u64, has_waited: bool) -> Permit<'_> {
        Permit { limiter: self, reservation: Some(reservation), place, has_waited }
    }

    fn lock(&self) -> (LocalTime, MutexGuard<'_, State>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (self.local(clock::now()), state)
    }

    fn blocked(&self, block: &Block) -> Blocked {
        blocked_at(block, self.local(clock::now()))
    }

    fn local(&self, at: Instant) -> LocalTime {
        #[cfg(feature = "test-util")]
        if let Some(clock) = &self.test_clock {
            return clock.local();
        }
        LocalTime(micros(at.saturating_duration_since(self.start)))
    }

    fn instant(&self, at: LocalTime) -> Instant {
        #[cfg(feature = "test-util")]
        if let Some(clock) = &self.test_clock {
            return clock.instant(at);
        }
        clock::after(self.start, at.since(LocalTime(0)))
    }
}

/// The record that members share.
impl Limiter {
    /// Makes an update of the record that is due, or sees to it that it is made when it is.
    fn plan_update(&self, now: LocalTime, mut state: MutexGuard<'_, State>) {
        if self.shared.is_none() {
            return;
        }
        match state.member.update_at(state.lines.waiting() as u64) {
            Some(at) if at <= now => {
                drop(state);
                self.start_update();
            }
            Some(at) if state.planned.is_none_or(|planned| at < planned || planned < now) => {
                let (Some(limiter), Ok(runtime)) = (self.this.upgrade(), Handle::try_current())
                else {
                    return;
                };
                state.planned = Some(at);
                let wake = self.instant(at);
                runtime.spawn(async move {
                    sleep_until(wake).await;
                    let (now, mut state) = limiter.lock();
                    // Otherwise another one was planned since, for earlier.
                    if state.planned == Some(at) {
                        state.planned = None;
                        limiter.plan_update(now, state);
                    }
                });
            }
            _ => {}
        }
    }

    /// Updates the record, unless that is being done. A store on this machine has done it when this
    /// returns.
    fn start_update(&self) {
        let (Some(limiter), Ok(runtime)) = (self.this.upgrade(), Handle::try_current()) else {
            return;
        };
        if !self.begin_update() {
            return;
        }
        let mut updating = Box::pin(async move { limiter.update().await });
        let mut context = Context::from_waker(Waker::noop());
        if updating.as_mut().poll(&mut context).is_pending() {
            runtime.spawn(updating);
        }
    }

    /// Updates the record now: what is known here is told, and what others have told is read.
    pub(crate) async fn synchronize(&self) {
        while !self.begin_update() {
            sleep(Duration::from_millis(5)).await;
        }
        self.update().await;
    }

    /// Returns whether no other update is being made.
    fn begin_update(&self) -> bool {
        let (now, mut state) = self.lock();
        let is_free = state.updating.is_none_or(|since| now >= since.plus(STALE_UPDATE));
        if is_free {
            state.updating = Some(now);
        }
        is_free
    }

    async fn update(&self) {
        let Some(shared) = &self.shared else { return };
        let (report, me, policy, known_ahead) = {
            let (now, mut state) = self.lock();
            let waiting = state.lines.waiting() as u64;
            let report = state.member.report(now, waiting, random_part());
            (report, state.member.id(), state.policy, state.member.ahead())
        };
        let mut result = Err("the store did not apply the change");
        let mut apply = |current: Option<&[u8]>, at: StoreTime| {
            let wall = ServiceTime::from(clock::wall());
            let local = self.local(clock::now());
            // Rounding does not move the ends of windows.
            let ahead = Some(at.local().0 - local.0)
                .filter(|ahead| known_ahead.abs_diff(*ahead) > MAX_ROUNDING)
                .unwrap_or(known_ahead);
            let now = local.moved(ahead);
            let known = current.and_then(|current| decode(current, at, wall));
            let mut ledger = known.unwrap_or_else(|| Ledger::new(now, wall));
            ledger.bury(now, |other| other == me || shared.is_alive(other));
            if !ledger.admits(me, now) {
                result = Err("it has as many members as there may be");
                return current.unwrap_or_default().to_vec();
            }
            let granted = ledger.update(me, &report.moved(ahead), &policy, now);
            let record = encode(&ledger, at, wall);
            if record.len() > MAX_RECORD {
                result = Err("what is known does not fit into a record");
                return current.unwrap_or_default().to_vec();
            }
            result = Ok((ledger, ahead, granted));
            record
        };
        let change = Change::new(me, &mut apply);
        let updated = timeout(UPDATE_TIMEOUT, shared.store.update(&shared.key, change)).await;
        let (now, mut state) = self.lock();
        match (updated, result) {
            (Ok(Ok(())), Ok((ledger, ahead, granted))) => {
                state.member.updated(now, (ledger, ahead), granted);
                if let Some(problem) = state.problem.take() {
                    state.changes += 1;
                    tracing::info!(store = %shared.store.location(), was = problem, "rate limits are shared again");
                }
            }
            (updated, result) => {
                let problem = match (updated, result) {
                    (Err(_), _) => "it does not answer".to_owned(),
                    (Ok(Err(error)), _) => error.to_string(),
                    (_, Err(problem)) => problem.to_owned(),
                    _ => return,
                };
                state.member.update_failed(now);
                if state.problem.is_none() {
                    state.changes += 1;
                    tracing::warn!(store = %shared.store.location(), problem, "rate limits are not shared");
                }
                state.problem = Some(problem);
            }
        }
        state.updating = None;
        self.go_on(now, state);
    }

    /// Returns the store's state where it has changed since `seen`.
    pub(crate) fn store_news(&self, seen: &AtomicU64) -> Option<SharedStatus> {
        let shared = self.shared.as_ref()?;
        let (now, state) = self.lock();
        let is_new = seen.swap(state.changes, Ordering::Relaxed) != state.changes;
        is_new.then(|| shared.status(&state, now))
    }
}

impl SharedRecord {
    fn is_alive(&self, member: MemberId) -> bool {
        self.store.is_alive(&self.key, member).unwrap_or(true)
    }

    fn status(&self, state: &State, now: LocalTime) -> SharedStatus {
        SharedStatus {
            location: self.store.location().into_owned(),
            members: state.member.members(now),
            problem: state.problem.clone(),
        }
    }
}

impl std::fmt::Debug for SharedRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedRecord({})", self.store.location())
    }
}

fn new_member(now: LocalTime, shared: bool) -> Member {
    Member::new(MemberId::random(), now, clock::wall().into(), shared)
}

fn blocked_at(block: &Block, now: LocalTime) -> Blocked {
    let Block { until, named, reason } = *block;
    Blocked { reason, until: named.system(), remaining: until.since(now) }
}

impl Permit<'_> {
    /// Returns the call's place in line, which a retry keeps.
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// Returns whether the call stood in line for it.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Records that the request is sent now and lasts no longer than `lease`. Returns false where
    /// the permit has lapsed.
    pub(crate) fn start(&mut self, lease: Duration) -> bool {
        let Some(reservation) = &mut self.reservation else { return false };
        self.limiter.change(|member, now| member.start(reservation, now, lease))
    }

    /// Records the head of the response; returns the block that it asks for.
    pub(crate) fn observe(mut self, status: StatusCode, headers: &HeaderMap) -> Option<Blocked> {
        let reservation = self.reservation.take()?;
        let block = self.limiter.change(|member, now| {
            let head = ResponseHead::read(status, headers, member.service_time(now));
            member.record_response(reservation, now, &head, jitter)
        })?;
        Some(self.limiter.blocked(&block))
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
        let was_waiting = state.lines.leave(&self.policy, self.place);
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

impl ResponseHead {
    /// Reads a response's head; `believed` is the service's time where it does not tell it.
    fn read(status: StatusCode, headers: &HeaderMap, believed: ServiceTime) -> Self {
        let date = headers::date(headers);
        let service_now = date.unwrap_or_else(|| believed.system());
        let figure = headers::rate_headers(headers, service_now).filter(|figure| {
            figure.reset.duration_since(service_now).unwrap_or_default() <= MAX_WINDOW
        });
        Self {
            status: status.as_u16(),
            date: date.map(ServiceTime::from),
            figure: figure.map(|figure| Figure {
                limit: figure.limit,
                remaining: figure.remaining,
                reset: figure.reset.into(),
            }),
            retry_after: headers::retry_after(headers, service_now),
        }
    }
}
