//! A call that waits for a permit. It looks at the limiter from time to time, until its permit has arrived or
//! its wait would be too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::Limiter;
use super::queue::{Place, Rank};
use super::waits::{HEARTBEAT, Wait};
use crate::clock;
use crate::rate_limit::quota::instant::{LedgerTime, duration, micros};
use crate::rate_limit::quota::reading::ResponseHead;
use crate::rate_limit::view::{Blocked, Priority, WaitReason};

/// How soon a call that may hardly wait looks again, while the store has not answered.
const ANSWER_INTERVAL: Duration = Duration::from_millis(5);
/// In a long queue, calls look less often: later by this for each one that waits.
const LOOK_INTERVAL_PER_CALL: Duration = Duration::from_millis(10);

/// A call's request for a permit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acquire {
    /// The call's place, if it has one from an earlier attempt.
    pub(crate) place: Option<u64>,
    pub(crate) priority: Priority,
    /// How long the call may wait once the store has been asked.
    pub(crate) max_wait: Duration,
    /// When the call ends.
    pub(crate) deadline: Instant,
    /// Whether to send even if nothing is left: a person asked for it.
    pub(crate) forced: bool,
    /// How long the request may last once it is sent.
    pub(crate) lease: Duration,
}

/// Why a call may not wait any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What it waits for. A block lasts for too long. `None` if the call has reached its deadline.
    pub(crate) wait: Option<Wait>,
    /// How long the call has waited.
    pub(crate) waited: Duration,
}

/// Numbers the places. All queues share it, because a call may continue in another key's queue.
static PLACES: AtomicU64 = AtomicU64::new(1);

impl Limiter {
    /// Waits until a request may be sent. Passes its waits to `report`: a block at once, another wait only if
    /// it lasts and the call is first in line.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        request: Acquire,
        mut report: impl FnMut(Wait),
    ) -> Result<Permit, Refused> {
        let mut line = InLine::join(self, request);
        if self.is_busy() {
            // Other tasks that can run now may ask, too. One exchange serves all.
            yield_now().await;
        }
        loop {
            let changed = self.changed.notified();
            let now = self.clock.now();
            self.exchange(now);
            if let Some(permit) = line.take_permit(now) {
                return Ok(permit);
            }
            let wake = line.look(now, &mut report)?;
            tokio::select! {
                biased;
                granted = &mut line.grant => line.granted = granted.ok(),
                () = changed => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Takes a permit back whose request was not sent.
    fn give_back(self: &Arc<Self>, permit: u64) {
        let now = self.clock.now();
        let mut state = self.state();
        state.give_back(permit, now);
        drop(state);
        self.follow(now);
    }

    /// Returns whether an exchange costs more than a turn of the other tasks.
    fn is_busy(&self) -> bool {
        !self.store.is_local() && self.state().in_flight() > 0
    }
}

/// A call in the queue. It leaves the queue when this is dropped.
struct InLine<'l> {
    limiter: &'l Arc<Limiter>,
    request: Acquire,
    place: Place,
    grant: oneshot::Receiver<u64>,
    /// The permit that has arrived.
    granted: Option<u64>,
    /// Whether the call has taken its permit, and has left the queue with it.
    is_done: bool,
    /// When the call began to wait: the store has been asked, and has granted nothing.
    waits_since: Option<Instant>,
    reported: Reported,
}

/// Which waits of a call were reported.
#[derive(Debug, Default)]
struct Reported {
    has_looked: bool,
    /// The reason of the last reported wait, and the end if it is a block.
    last: Option<(WaitReason, Option<std::time::SystemTime>)>,
}

impl<'l> InLine<'l> {
    fn join(limiter: &'l Arc<Limiter>, request: Acquire) -> Self {
        let rank = if request.forced {
            Rank::Forced
        } else {
            request.priority.into()
        };
        let number = request
            .place
            .unwrap_or_else(|| PLACES.fetch_add(1, Ordering::Relaxed));
        let place = Place::new(rank, number);
        let grant = limiter.state().join(place);
        Self {
            limiter,
            request,
            place,
            grant,
            granted: None,
            is_done: false,
            waits_since: None,
            reported: Reported::default(),
        }
    }

    /// Returns the permit that has arrived, if it has. Joins the queue again if that has lapsed: this task was not
    /// polled in time.
    fn take_permit(&mut self, now: LedgerTime) -> Option<Permit> {
        loop {
            let granted = match self.granted.take() {
                Some(granted) => granted,
                None => match self.grant.try_recv() {
                    Ok(granted) => granted,
                    Err(oneshot::error::TryRecvError::Empty) => return None,
                    Err(oneshot::error::TryRecvError::Closed) => 0,
                },
            };
            let mut state = self.limiter.state();
            if state.send(granted, micros(self.request.lease), now) {
                drop(state);
                self.is_done = true;
                return Some(Permit {
                    limiter: Arc::clone(self.limiter),
                    number: Some(granted),
                    place: self.place.number(),
                    waited: self.waited(),
                });
            }
            self.grant = state.join(self.place);
            drop(state);
            self.limiter.exchange(now);
        }
    }

    /// Looks at what the call waits for, and reports it. Returns when to look again.
    fn look(
        &mut self,
        limiter_now: LedgerTime,
        report: &mut impl FnMut(Wait),
    ) -> Result<Instant, Refused> {
        let now = clock::now();
        let deadline = self.request.deadline;
        if deadline <= now {
            return Err(Refused {
                wait: None,
                waited: self.waited(),
            });
        }
        let (wait, is_first, waiting) = {
            let state = self.limiter.state();
            let wait = state.wait(limiter_now);
            (wait, state.is_first(self.place), state.waiting())
        };
        let Some(wait) = wait else {
            let is_hasty = self.request.max_wait < duration(HEARTBEAT);
            let interval = if is_hasty {
                ANSWER_INTERVAL
            } else {
                duration(HEARTBEAT)
            };
            return Ok(deadline.min(now + interval));
        };
        let since = *self.waits_since.get_or_insert(now);
        let latest = clock::after(since, self.request.max_wait);
        let is_too_long = match wait.blocked {
            Some(blocked) => clock::after(now, blocked.remaining) > latest.min(deadline),
            None => latest <= now,
        };
        if is_too_long {
            return Err(Refused {
                wait: Some(wait),
                waited: self.waited(),
            });
        }
        self.reported.see(wait, is_first, report);
        let mut wake = now + duration(HEARTBEAT);
        if !is_first {
            let others = u32::try_from(waiting).unwrap_or(u32::MAX);
            wake += LOOK_INTERVAL_PER_CALL * others;
        }
        Ok(wake.min(latest).min(deadline))
    }

    fn waited(&self) -> Duration {
        let since = self.waits_since;
        since.map_or(Duration::ZERO, |since| {
            clock::now().saturating_duration_since(since)
        })
    }
}

impl Reported {
    fn see(&mut self, wait: Wait, is_first: bool, report: &mut impl FnMut(Wait)) {
        let is_first_look = !std::mem::replace(&mut self.has_looked, true);
        let is_due = if wait.blocked.is_some() {
            is_first || is_first_look
        } else {
            // Most responses arrive before the second look, so such a short wait is not reported.
            is_first && !is_first_look
        };
        let key = (wait.reason, wait.blocked.map(|blocked| blocked.until));
        if is_due && self.last != Some(key) {
            self.last = Some(key);
            report(wait);
        }
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        self.grant.close();
        let unused = self.granted.or_else(|| self.grant.try_recv().ok());
        let mut state = self.limiter.state();
        state.leave(self.place);
        drop(state);
        if let Some(unused) = unused {
            self.limiter.give_back(unused);
        }
    }
}

/// The right to send one request now. If it is dropped without an outcome, its request counts as lost.
#[must_use = "a permit is for sending a request"]
pub(crate) struct Permit {
    limiter: Arc<Limiter>,
    number: Option<u64>,
    place: u64,
    waited: Duration,
}

impl Permit {
    /// Returns the call's place in the queue, which a retry keeps.
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// Returns how long the call waited in the queue.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    /// Records the head of the response. Returns the block if it is a 429.
    pub(crate) fn observe(self, status: StatusCode, headers: &HeaderMap) -> Option<Blocked> {
        let head = ResponseHead::read(status, headers, self.limiter.clock.wall());
        self.observe_head(head);
        head.blocked()
    }

    /// Records the parts of a response's head that matter.
    pub(crate) fn observe_head(mut self, head: ResponseHead) {
        self.end(Some(head));
    }

    /// Records that the request cannot have reached the service.
    pub(crate) fn not_sent(mut self) {
        if let Some(number) = self.number.take() {
            self.limiter.give_back(number);
        }
    }

    fn end(&mut self, head: Option<ResponseHead>) {
        if let Some(number) = self.number.take() {
            let now = self.limiter.clock.now();
            let mut state = self.limiter.state();
            state.end(number, head, now);
            drop(state);
            self.limiter.follow(now);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.end(None);
    }
}
