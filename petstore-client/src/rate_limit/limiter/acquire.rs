//! How a call acquires a permit: at once, or in the queue. A waiting call looks at the limiter from
//! time to time, until its grant has arrived or a block lasts too long for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::wait::{Wait, WaitReports};
use super::{Limiter, State, snapshot};
use crate::clock;
use crate::rate_limit::queue::Place;
use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::decision::Decision;
use crate::rate_limit::quota::outstanding::Reservation;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::ResponseHead;
use crate::rate_limit::shared::engine::Engine;
use crate::rate_limit::view::{Blocked, Priority, WaitReason};

/// How often a waiting call checks for leases that have ended. It cannot rely on other tasks to do
/// that: those that hold the leases may not be polled, and neither may the first in line. In a long
/// queue, all but the first check less often.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const POLL_INTERVAL_PER_WAITER: Duration = Duration::from_micros(100);
/// How often the first in line checks whether the machine was suspended. The runtime's timers stand
/// still during a suspension.
const SUSPENSION_INTERVAL: Duration = Duration::from_secs(5);
/// How soon a call whose wait is over (`latest`) checks once more whether an update of the shared
/// record has brought a grant.
const ANSWER_INTERVAL: Duration = Duration::from_millis(5);

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

/// Numbers the places. All queues share it, because a call may continue in another key's queue.
static PLACES: AtomicU64 = AtomicU64::new(1);

/// What a call in the queue sees when it looks at the limiter.
struct Look {
    /// What the call waits for; `None` if it has a grant.
    wait: Option<Wait>,
    is_first: bool,
    /// When to look again.
    wake: Instant,
}

impl Look {
    fn without_wait(wake: Instant) -> Self {
        Self {
            wait: None,
            is_first: false,
            wake,
        }
    }

    fn at(reason: WaitReason, blocked: Option<Blocked>, wake: Instant) -> Self {
        Self {
            wait: Some(Wait { reason, blocked }),
            ..Self::without_wait(wake)
        }
    }
}

impl Limiter {
    /// Waits until a request may be sent. Fails as soon as a block is known that lasts longer than
    /// the call may wait. Passes its waits to `report`: a block at once, another wait only if it
    /// lasts and the call is first in line.
    pub(crate) async fn acquire(
        &self,
        request: Acquire,
        report: impl FnMut(Wait),
    ) -> Result<Permit<'_>, Blocked> {
        let number = request
            .place
            .unwrap_or_else(|| PLACES.fetch_add(1, Ordering::Relaxed));
        let place = Place(request.priority, number);
        if let Some(permit) = self.try_acquire(request, place) {
            return Ok(permit);
        }
        let mut line = self.join(request, place);
        let mut reports = WaitReports::new(report);
        loop {
            let changed = self.changed.notified();
            let look = self.look(&line)?;
            reports.see(look.wait, look.is_first);
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
                () = sleep_until(look.wake) => {}
                () = self.clock.moved() => self.changed.notify_waiters(),
            }
        }
    }

    /// Acquires a permit at once, if one is free and nobody waits for it.
    fn try_acquire(&self, request: Acquire, place: Place) -> Option<Permit<'_>> {
        let (now, mut state) = self.lock_awake(false);
        if request.policy.rate_limiting {
            state.policy = request.policy;
        }
        let State { engine, queue, .. } = &mut *state;
        let probe = if request.forced && !engine.is_probing(now) {
            Some(true)
        } else {
            match engine.decide(now, &request.policy) {
                Decision::Send { probe } if queue.is_first(&request.policy, place) => Some(probe),
                _ => None,
            }
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

    /// Grants what may be sent, and looks at what a call in the queue still waits for. Fails if a
    /// block lasts too long for the call.
    fn look(&self, line: &InLine<'_>) -> Result<Look, Blocked> {
        let (now, mut state) = self.lock_awake(true);
        state.engine.expire(now);
        self.grant(&mut state, now);
        let InLine { request, place, .. } = line;
        let mut look = if state.queue.contains(&request.policy, *place) {
            self.look_at_decision(&state.engine, request, now)?
        } else {
            Look::without_wait(clock::now() + POLL_INTERVAL)
        };
        look.is_first = state.queue.is_first(&request.policy, *place);
        if look.is_first {
            look.wake = look.wake.min(self.watch_until(&state.engine));
        } else {
            let waiters = u32::try_from(state.queue.waiting()).unwrap_or(u32::MAX);
            look.wake += POLL_INTERVAL_PER_WAITER * waiters;
        }
        self.follow(now, state);
        Ok(look)
    }

    fn look_at_decision(
        &self,
        engine: &Engine,
        request: &Acquire,
        now: LocalTime,
    ) -> Result<Look, Blocked> {
        let runtime_now = clock::now();
        let poll_at = runtime_now + POLL_INTERVAL;
        Ok(match engine.decide(now, &request.policy) {
            Decision::Send { .. } => Look::without_wait(poll_at),
            Decision::WaitUntil(block) => {
                let blocked = snapshot::blocked(engine, &block, now);
                let end = self.clock.instant(block.until);
                if end > request.latest {
                    return Err(blocked);
                }
                Look::at(WaitReason::Blocked, Some(blocked), end)
            }
            Decision::Pause(until) => {
                let end = self.clock.instant(until);
                Look::at(WaitReason::Members, None, end.min(poll_at))
            }
            Decision::WaitForResponse(WaitReason::Members) => {
                if request.latest <= runtime_now
                    && let Some(block) = engine.blocked_by_members(now)
                {
                    return Err(snapshot::blocked(engine, &block, now));
                }
                let answer_at = runtime_now + ANSWER_INTERVAL;
                let wake = request.latest.clamp(answer_at, poll_at);
                Look::at(WaitReason::Members, None, wake)
            }
            Decision::WaitForResponse(reason) => Look::at(reason, None, poll_at),
        })
    }

    /// Returns when the first in line looks again, to notice for all others that the machine was
    /// suspended or that a lease has ended.
    fn watch_until(&self, engine: &Engine) -> Instant {
        let check_at = clock::now() + SUSPENSION_INTERVAL;
        match engine.local().first_lease_end() {
            Some(end) => check_at.min(self.clock.instant(end)),
            None => check_at,
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
}

/// A call in the queue. It leaves the queue when this is dropped.
struct InLine<'l> {
    limiter: &'l Limiter,
    request: Acquire,
    place: Place,
    grant: oneshot::Receiver<Reservation>,
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

/// The right to send one request now. If it is dropped without an outcome, its request counts as
/// lost.
#[must_use = "a permit is for sending a request"]
pub(crate) struct Permit<'l> {
    limiter: &'l Limiter,
    reservation: Option<Reservation>,
    place: Place,
    has_waited: bool,
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
            Some(snapshot::blocked(engine, &block, now))
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
