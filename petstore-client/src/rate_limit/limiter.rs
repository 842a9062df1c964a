//! The queue in front of one key's ledger: calls acquire a permit, send, and show what came.
//!
//! All deciding is the ledger's. Calls are served in order of arrival; a retry keeps its place.
//! Whoever changes the ledger grants what may be sent then (`pump`), so that no waiter depends on
//! another one being run: a waiter that is not run in time loses its grant, which lapses.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
// Under the model checker each lock is a point where another task may come first.
#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use super::clock::{LocalTime, ServiceTime, micros};
use super::decision::{Decision, Policy};
use super::file::SharedFile;
use super::ledger::{Block, Ledger, ResponseHead};
use super::outstanding::Reservation;
use super::snapshot::{Blocked, Priority, QuotaWindow, RateLimits, WaitReason};
use super::window::Figure;
use crate::backoff::jitter;
use crate::clock;
use crate::http::headers;

/// How often a waiter looks whether a lease is over: a task that holds it may not be run, and
/// neither may the first in line. A long line looks less often.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const LOOK_INTERVAL_PER_WAITER: Duration = Duration::from_micros(100);
/// A reset that is further off cannot be right: quotas are counted by the minute and the day, and
/// one by the month is thinkable.
const MAX_WINDOW: Duration = Duration::from_secs(32 * 24 * 3600);
/// How often the first in line looks for responses to other processes' requests.
const SHARED_LOOK_INTERVAL: Duration = Duration::from_millis(20);

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
    start: Instant,
    state: Mutex<State>,
    /// Wakes all waiters: another block holds them back, which may be too long for some.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    /// What processes share, where they do.
    file: Option<SharedFile>,
    /// A line for each policy: what one client's settings hold up does not hold up another's calls.
    lines: Vec<(Policy, BTreeMap<Place, oneshot::Sender<Reservation>>)>,
    /// The last block that waiters were woken for.
    announced: Option<Block>,
}

/// Numbers the places in all lines: a call may go on in another key's line.
static PLACES: AtomicU64 = AtomicU64::new(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(Priority, u64);

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
    pub(crate) fn new(file: Option<SharedFile>) -> Self {
        let state = State {
            ledger: Ledger::new(LocalTime(0), clock::wall().into()),
            file,
            lines: Vec::new(),
            announced: None,
        };
        Self { start: clock::now(), state: Mutex::new(state), changed: Notify::new() }
    }

    /// Waits until a request may be sent. Fails as soon as a block is known to last longer than
    /// the call may wait. `report` hears of the waits.
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
            let (is_first, decision, wake) = self.look(&line);
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
        let (now, mut state) = self.lock();
        state.read_file(now);
        state.write_file(now);
        let ledger = &state.ledger;
        let service_now = ledger.clock.earliest(now);
        let open = ledger.windows.iter().filter(|window| window.reset > service_now);
        let windows = open.map(|window| QuotaWindow {
            quota: window.quota,
            limit: window.limit,
            remaining: ledger.left_in(window, &Policy::default()),
            reset: window.reset.system(),
        });
        let (wait_reason, blocked) = match ledger.decide(now, policy) {
            Decision::Send { .. } => (None, None),
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
            in_flight: ledger.requests.in_flight(),
            unresolved: ledger.requests.unresolved(),
            waiting: state.waiting(),
            throttled: ledger.throttled,
        }
    }

    /// Records that the last 429 was a ban.
    pub(crate) fn record_ban(&self) {
        self.update(|ledger, _| ledger.record_ban());
    }

    /// Returns when nothing that is known here matters any more.
    pub(super) fn idle_from(&self) -> Instant {
        let at = self.lock().1.ledger.idle_from();
        self.instant(at)
    }

    fn enter(&self, request: Acquire) -> Entry<'_> {
        let Acquire { place, priority, policy, latest, forced } = request;
        let (now, mut state) = self.lock();
        state.read_file(now);
        let place =
            Place(priority, place.unwrap_or_else(|| PLACES.fetch_add(1, Ordering::Relaxed)));
        let line = state.lines.iter().find(|(held, _)| *held == policy);
        let is_first = line.is_none_or(|(_, line)| line.range(..place).next().is_none());
        let entry = match state.ledger.decide(now, &policy) {
            _ if forced && !state.ledger.requests.is_probing(now) => {
                Entry::Permit(self.permit(state.ledger.requests.reserve(now, true), place.1, false))
            }
            Decision::Send { probe } if is_first => Entry::Permit(self.permit(
                state.ledger.requests.reserve(now, probe),
                place.1,
                false,
            )),
            Decision::WaitUntil(block) if self.instant(block.until) > latest => {
                Entry::Blocked(block)
            }
            _ => {
                let (sender, grant) = oneshot::channel();
                match state.lines.iter_mut().find(|(held, _)| *held == policy) {
                    Some((_, line)) => drop(line.insert(place, sender)),
                    None => state.lines.push((policy, BTreeMap::from([(place, sender)]))),
                }
                Entry::Line(InLine { limiter: self, policy, place, grant })
            }
        };
        state.write_file(now);
        entry
    }

    /// Grants what may be sent. Returns whether a place is the first in its line, what it waits for,
    /// and when to look again.
    fn look(&self, line: &InLine<'_>) -> (bool, Option<Decision>, Instant) {
        let (now, mut state) = self.lock();
        state.read_file(now);
        state.ledger.requests.expire(now);
        self.pump(&mut state, now);
        state.write_file(now);
        let waiters = u32::try_from(state.waiting()).unwrap_or(u32::MAX);
        let own = state.lines.iter().find(|(policy, _)| *policy == line.policy);
        let is_first = own.is_some_and(|(_, own)| own.keys().next() == Some(&line.place));
        // One that is in line no more has a grant.
        let waits = own.is_some_and(|(_, own)| own.contains_key(&line.place));
        let decision = waits.then(|| state.ledger.decide(now, &line.policy));
        let wake = match decision {
            Some(Decision::WaitUntil(block)) => self.instant(block.until),
            _ if is_first && state.file.is_some() => clock::now() + SHARED_LOOK_INTERVAL,
            _ if is_first => {
                let next = state.ledger.requests.first_lease_end().map(|end| self.instant(end));
                let latest = clock::now() + LOOK_INTERVAL;
                next.map_or(latest, |next| next.min(latest))
            }
            _ => clock::now() + LOOK_INTERVAL + LOOK_INTERVAL_PER_WAITER * waiters,
        };
        (is_first, decision, wake)
    }

    /// Changes the ledger, and grants what may be sent then.
    fn update<T>(&self, change: impl FnOnce(&mut Ledger, LocalTime) -> T) -> T {
        let (now, mut state) = self.lock();
        state.read_file(now);
        let result = change(&mut state.ledger, now);
        if !state.lines.is_empty() {
            state.ledger.requests.expire(now);
            self.pump(&mut state, now);
        }
        state.write_file(now);
        result
    }

    /// Grants what may be sent, first come, first served.
    fn pump(&self, state: &mut State, now: LocalTime) {
        let State { ledger, lines, announced, .. } = state;
        loop {
            lines.retain_mut(|(_, line)| {
                while let Some(first) = line.first_entry().filter(|first| first.get().is_closed()) {
                    first.remove();
                }
                !line.is_empty()
            });
            let decide = |(policy, _): &(Policy, _)| ledger.decide(now, policy);
            let may_go = lines
                .iter_mut()
                .filter_map(|line| match decide(line) {
                    Decision::Send { probe } => Some((line.1.first_entry()?, probe)),
                    _ => None,
                })
                .min_by_key(|(first, _)| *first.key());
            let Some((first, probe)) = may_go else { break };
            let reservation = ledger.requests.reserve(now, probe);
            if first.remove().send(reservation).is_err() {
                ledger.requests.release(reservation);
            }
        }
        let first = lines.first().map(|(policy, _)| ledger.decide(now, policy));
        if let Some(Decision::WaitUntil(block)) = first
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
        LocalTime(micros(at.saturating_duration_since(self.start)))
    }

    fn instant(&self, at: LocalTime) -> Instant {
        clock::after(self.start, at.since(LocalTime(0)))
    }
}

fn blocked_at(block: &Block, now: LocalTime) -> Blocked {
    let Block { until, named, reason } = *block;
    Blocked { reason, until: named.system(), remaining: until.since(now) }
}

impl State {
    fn waiting(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.len()).sum()
    }

    /// Takes over what other processes have written.
    fn read_file(&mut self, now: LocalTime) {
        if let Some(file) = &mut self.file {
            file.read(&mut self.ledger, now);
        }
    }

    fn write_file(&mut self, now: LocalTime) {
        if let Some(file) = &mut self.file {
            file.write(&mut self.ledger, now);
        }
    }
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
        self.limiter.update(|ledger, now| ledger.requests.start(reservation, now, lease))
    }

    /// Records the head of the response; returns the block that it asks for.
    pub(crate) fn observe(mut self, status: StatusCode, headers: &HeaderMap) -> Option<Blocked> {
        let reservation = self.reservation.take()?;
        let block = self.limiter.update(|ledger, now| {
            let head = ResponseHead::read(status, headers, ledger.clock.earliest(now));
            ledger.record_response(reservation, now, &head, jitter)
        })?;
        Some(self.limiter.blocked(&block))
    }

    /// Records that the request cannot have reached the service.
    pub(crate) fn not_sent(mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.limiter.update(|ledger, _| ledger.requests.release(reservation));
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.limiter.update(|ledger, now| ledger.requests.record_lost(reservation, now));
        }
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.grant.close();
        let unused = self.grant.try_recv();
        let (now, mut state) = self.limiter.lock();
        let own = state.lines.iter_mut().find(|(policy, _)| *policy == self.policy);
        let was_waiting = own.is_some_and(|(_, own)| own.remove(&self.place).is_some());
        if !was_waiting && unused.is_err() {
            return;
        }
        state.read_file(now);
        if let Ok(reservation) = unused {
            state.ledger.requests.release(reservation);
        }
        self.limiter.pump(&mut state, now);
        state.write_file(now);
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
