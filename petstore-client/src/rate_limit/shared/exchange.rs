//! When and how a member updates its record in the store. An update is started by whichever caller
//! of the limiter notices that it is due.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{sleep, sleep_until, timeout};

use super::engine::Engine;
use super::member::Member;
use super::record::Record;
use super::store::{Change, RecordKey, SharedStore, StoreError, StoreTime};
use super::update::{Granted, Rejected, Report, Update};
use crate::backoff::random_part;
use crate::clock;
use crate::rate_limit::quota::clock::{LocalTime, ServiceTime};
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::time::Clock;
use crate::rate_limit::view::SharedStatus;

/// A smaller difference between two readings of a clock is rounding, in microseconds.
const MAX_ROUNDING: u64 = 1_000;
/// The maximum time between reading the store's clock and this process's clock, in microseconds:
/// a busy machine may interrupt the process in between.
const MAX_DELAY: u64 = 100_000;
/// An update that takes this many times its time limit is abandoned, because its runtime must be
/// blocked.
const STALE_FACTOR: u32 = 2;
/// How often a process that is about to end checks whether the update in progress is over.
const BUSY_INTERVAL: Duration = Duration::from_millis(5);

/// The limiter, for the exchange with its store.
pub(crate) trait Host: Send + Sync + 'static {
    fn clock(&self) -> &Clock;

    /// Calls `access` with the member, the state of the exchange and the current time, under the
    /// limiter's lock.
    fn access<T>(&self, access: impl FnOnce(&mut Member, &mut ExchangeState, LocalTime) -> T) -> T;

    /// Returns how many calls wait for reservations, and the policy of the last call.
    fn demand(&self) -> (u64, Policy);

    /// Called after an update: grants what may be sent now, and plans the next update.
    fn updated(&self);

    /// Wakes all waiters, because the next update must be planned again.
    fn wake(&self);
}

/// The exchange of a process with its store: which store, and which of its records.
pub(crate) struct Exchange {
    store: SharedStore,
    key: RecordKey,
}

/// The progress of an exchange. The limiter stores it beside the member.
pub(crate) struct ExchangeState {
    /// The id of the process that made this member. After a fork, the child has a copy of this
    /// state.
    process: u32,
    /// When the update in progress began, and when the next one is planned.
    updating: Option<LocalTime>,
    planned: Option<LocalTime>,
    /// The store's problem, and how often it has changed.
    problem: Option<Problem>,
    changes: u64,
}

impl Default for ExchangeState {
    fn default() -> Self {
        Self {
            process: std::process::id(),
            updating: None,
            planned: None,
            problem: None,
            changes: 0,
        }
    }
}

/// Why the record cannot be used, and whether this process sends nothing meanwhile. If not, it
/// continues alone.
struct Problem {
    text: String,
    is_waiting: bool,
}

impl Problem {
    fn new(text: impl Into<String>, is_waiting: bool) -> Option<Self> {
        let text = text.into();
        Some(Self { text, is_waiting })
    }
}

/// For tests: simulates a fork.
#[cfg(test)]
impl ExchangeState {
    /// Makes this process look like a fork of the one that has used it.
    pub(crate) fn set_forked(&mut self) {
        self.process = 0;
    }
}

/// When the next update is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    At(LocalTime),
    /// Nothing to do: an earlier update is already planned, or none is needed.
    NotYet,
}

impl Exchange {
    pub(crate) fn new(store: SharedStore, key: RecordKey) -> Arc<Self> {
        Arc::new(Self { store, key })
    }

    /// Makes this process another member if it is the child of a fork. The updates that were in
    /// progress in the parent do not continue here.
    pub(crate) fn notice_fork(
        &self,
        engine: &mut Engine,
        progress: &mut ExchangeState,
        now: LocalTime,
    ) {
        if progress.process == std::process::id() {
            return;
        }
        *progress = ExchangeState::default();
        if let Some(member) = engine.member_mut() {
            member.become_another(now);
        }
    }

    /// Plans the next update, for this number of waiting calls.
    pub(crate) fn plan(
        &self,
        engine: &Engine,
        progress: &mut ExchangeState,
        waiting: u64,
        now: LocalTime,
    ) -> Due {
        let Some(at) = engine.member().and_then(|member| member.update_at(waiting)) else {
            return Due::NotYet;
        };
        if at <= now {
            return Due::Now;
        }
        let is_first = progress
            .planned
            .is_none_or(|planned| at < planned || planned < now);
        if !is_first || Handle::try_current().is_err() {
            return Due::NotYet;
        }
        progress.planned = Some(at);
        Due::At(at)
    }

    /// Starts an update that is due, or waits for it in a separate task.
    pub(crate) fn run<H: Host>(self: &Arc<Self>, host: &Weak<H>, due: Due) {
        match due {
            Due::Now => self.start(host),
            Due::At(at) => self.wait(host, at),
            Due::NotYet => {}
        }
    }

    fn wait<H: Host>(self: &Arc<Self>, host: &Weak<H>, at: LocalTime) {
        let (Some(host), Ok(runtime)) = (host.upgrade(), Handle::try_current()) else {
            return;
        };
        let wake = host.clock().instant(at);
        let planned = Planned { host, at };
        runtime.spawn(async move {
            sleep_until(wake).await;
            if planned.take() {
                planned.host.updated();
            }
        });
    }

    /// Updates the record, unless an update is in progress. With a store on this machine, the
    /// update is over when this returns.
    pub(crate) fn start<H: Host>(self: &Arc<Self>, host: &Weak<H>) {
        let (Some(host), Ok(runtime)) = (host.upgrade(), Handle::try_current()) else {
            return;
        };
        let Some(since) = self.begin(&*host) else {
            return;
        };
        let exchange = Arc::clone(self);
        let mut updating = Box::pin(async move {
            exchange.update(&*host, since, Member::report).await;
        });
        let mut context = Context::from_waker(Waker::noop());
        if updating.as_mut().poll(&mut context).is_pending() {
            runtime.spawn(updating);
        }
    }

    /// Reports to the record and reads it now, because the process may end.
    pub(crate) async fn synchronize<H: Host>(&self, host: &H) {
        let since = loop {
            if let Some(since) = self.begin(host) {
                break since;
            }
            sleep(BUSY_INTERVAL).await;
        };
        self.update(host, since, Member::last_report).await;
    }

    /// Removes the record.
    pub(crate) async fn forget(&self) -> Result<(), StoreError> {
        self.store.forget(Some(&self.key)).await
    }

    /// Returns whether a problem of the store has begun or ended since `seen`, and updates `seen`.
    pub(crate) fn has_changed(&self, progress: &ExchangeState, seen: &AtomicU64) -> bool {
        seen.swap(progress.changes, Ordering::Relaxed) != progress.changes
    }

    /// Returns whether the record has been read.
    pub(crate) fn has_read(&self, engine: &Engine) -> bool {
        engine.member().is_some_and(Member::has_read_record)
    }

    /// Returns the store's status.
    pub(crate) fn status(
        &self,
        engine: &Engine,
        progress: &ExchangeState,
        now: LocalTime,
    ) -> Option<SharedStatus> {
        let members = engine.member()?.members(now);
        Some(SharedStatus {
            location: self.store.location().into_owned(),
            members: u32::try_from(members).unwrap_or(u32::MAX),
            problem: progress
                .problem
                .as_ref()
                .map(|problem| problem.text.clone()),
            is_waiting: progress
                .problem
                .as_ref()
                .is_some_and(|problem| problem.is_waiting),
        })
    }

    /// Begins an update, and returns its start; `None` while another one is in progress.
    fn begin<H: Host>(&self, host: &H) -> Option<LocalTime> {
        let stale = self.store.time_limit() * STALE_FACTOR;
        host.access(|_, progress, now| {
            let is_free = progress
                .updating
                .is_none_or(|since| now >= since.plus(stale));
            if is_free {
                progress.updating = Some(now);
            }
            is_free.then_some(now)
        })
    }

    async fn update<H: Host>(
        &self,
        host: &H,
        since: LocalTime,
        report: fn(&mut Member, LocalTime, u64, f64) -> Report,
    ) {
        let _updating = Updating { host, since };
        let (waiting, policy) = host.demand();
        let (report, me) = host.access(|member, _, now| {
            let report = report(member, now, waiting, random_part());
            (report, member.id())
        });
        let mut result = Err(Rejected::from("the store did not apply the change"));
        let mut by = 0;
        let mut apply = |current: Option<&[u8]>, at: StoreTime| {
            let now = host.clock().now();
            let shift = shift_to(at, now);
            by = shift;
            let now = now.moved(shift);
            let report = report.moved(shift);
            let copy = || {
                // After a jump of the store's clock, the times in the copy are wrong.
                let is_jump = shift.unsigned_abs() > MAX_DELAY;
                host.access(|member, _, _| member.copy().filter(|_| !is_jump))
            };
            let is_alive = |other| self.store.is_alive(&self.key, other).unwrap_or(true);
            let wall = ServiceTime::from(clock::wall());
            let update = Update::new(me, &report, &policy, now);
            match update.apply_to_stored(current, at, wall, is_alive, copy) {
                Ok(applied) => {
                    result = Ok(Updated {
                        record: applied.record,
                        granted: applied.granted,
                    });
                    applied.bytes
                }
                Err(rejected) => {
                    result = Err(rejected);
                    current.unwrap_or_default().to_vec()
                }
            }
        };
        let change = Change::new(me, &mut apply);
        let stored = timeout(
            self.store.time_limit(),
            self.store.update(&self.key, change),
        )
        .await;
        let stored = match stored {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it does not answer".to_owned()),
        };
        if stored.is_ok() && result.is_ok() && report.leaves {
            self.store.has_left(&self.key, me);
        }
        host.access(|member, progress, now| {
            // This update was abandoned, and another one has begun.
            if progress.updating != Some(since) {
                return;
            }
            progress.updating = None;
            host.clock().shift(by);
            member.shift(by);
            let now = now.moved(by);
            let problem = Self::take_over(member, now, stored, result, report.given_back);
            self.note(progress, problem);
        });
        host.updated();
    }

    /// Takes over the result of an update. `stored` says whether the store has saved it. Returns the
    /// store's problem, if there is one.
    fn take_over(
        member: &mut Member,
        now: LocalTime,
        stored: Result<(), String>,
        result: Result<Updated, Rejected>,
        given_back: u64,
    ) -> Option<Problem> {
        match (stored, result) {
            (Ok(()), Ok(updated)) => {
                member.updated(now, updated.record, given_back, updated.granted);
                None
            }
            (Ok(()), Err(rejected)) => {
                let is_waiting = rejected.full.is_some();
                match rejected.full {
                    Some(record) => member.wait_for_room(now, *record),
                    None => member.update_failed(now, None),
                }
                Problem::new(rejected.problem, is_waiting)
            }
            (Err(problem), result) => {
                member.update_failed(now, result.ok().map(|updated| updated.record));
                Problem::new(problem, false)
            }
        }
    }

    /// Remembers the store's problem, and counts the changes.
    fn note(&self, progress: &mut ExchangeState, problem: Option<Problem>) {
        let store = self.store.location();
        let was_waiting = progress.problem.as_ref().map(|was| was.is_waiting);
        let is_waiting = problem.as_ref().map(|problem| problem.is_waiting);
        if was_waiting != is_waiting {
            match (&progress.problem, &problem) {
                (_, Some(Problem { text, is_waiting })) if *is_waiting => tracing::warn!(
                    %store,
                    problem = text,
                    "this process sends nothing until another one ends"
                ),
                (_, Some(Problem { text, .. })) => tracing::warn!(
                    %store,
                    problem = text,
                    "rate limits are not shared; this process sends more slowly, for others that it cannot \
                     see; if twelve of them start when the quota is used up, the key may be banned"
                ),
                (Some(was), None) => {
                    tracing::info!(%store, was = was.text, "rate limits are shared again");
                }
                (None, None) => {}
            }
            progress.changes += 1;
        }
        progress.problem = problem;
    }
}

/// The record after an update.
struct Updated {
    record: Record,
    granted: Granted,
}

/// Returns how far the store's clock is ahead. A difference that is only rounding counts as zero,
/// so that the ends of windows do not move.
fn shift_to(at: StoreTime, now: LocalTime) -> i64 {
    let shift = at.since().0.saturating_sub(now.0);
    if shift.unsigned_abs() > MAX_ROUNDING {
        shift
    } else {
        0
    }
}

/// A planned update. If its runtime ends first, another update can be planned.
struct Planned<H: Host> {
    host: Arc<H>,
    at: LocalTime,
}

impl<H: Host> Planned<H> {
    /// Ends the plan. Returns false if an earlier update has been planned in its place.
    fn take(&self) -> bool {
        self.host.access(|_, progress, _| {
            let is_planned = progress.planned == Some(self.at);
            if is_planned {
                progress.planned = None;
            }
            is_planned
        })
    }
}

impl<H: Host> Drop for Planned<H> {
    fn drop(&mut self) {
        if self.take() {
            self.host.wake();
        }
    }
}

/// An update in progress. If its runtime ends, another one can begin.
struct Updating<'h, H: Host> {
    host: &'h H,
    since: LocalTime,
}

impl<H: Host> Drop for Updating<'_, H> {
    fn drop(&mut self) {
        let is_unfinished = self.host.access(|_, progress, _| {
            let is_own = progress.updating == Some(self.since);
            if is_own {
                progress.updating = None;
            }
            is_own
        });
        if is_unfinished {
            self.host.wake();
        }
    }
}
