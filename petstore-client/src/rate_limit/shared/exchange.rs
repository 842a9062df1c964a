//! Updates of the shared record. Any caller of the limiter that finds one due starts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{sleep, sleep_until, timeout};

use super::division::Report;
use super::member::Member;
use super::store::{Change, StoreTime, update_record};
use crate::backoff::random_part;
use crate::clock;
use crate::rate_limit::limiter::{Limiter, State, StateGuard};
use crate::rate_limit::quota::clock::{LocalTime, ServiceTime};
use crate::rate_limit::view::SharedStatus;

/// The tolerance when clocks are compared, in microseconds.
const MAX_ROUNDING: u64 = 1_000;
/// The time limit of an update.
const UPDATE_TIMEOUT: Duration = Duration::from_millis(800);
/// An update that is older than this is abandoned: its runtime is blocked.
const STALE_UPDATE: Duration = Duration::from_secs(2);

/// A planned update. If its runtime ends before, another one can be planned.
struct Planned {
    limiter: Arc<Limiter>,
    at: LocalTime,
}

impl Planned {
    /// Ends the plan, unless an earlier update has been planned since.
    fn take(&self) -> Option<(LocalTime, StateGuard<'_>)> {
        let (now, mut state) = self.limiter.lock();
        (state.planned == Some(self.at)).then(|| {
            state.planned = None;
            (now, state)
        })
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        if self.take().is_some() {
            self.limiter.changed.notify_waiters();
        }
    }
}

/// An update in progress. If its runtime ends, another one can begin.
struct Updating<'l> {
    limiter: &'l Limiter,
    since: LocalTime,
}

impl Drop for Updating<'_> {
    fn drop(&mut self) {
        let (_, mut state) = self.limiter.lock();
        if state.updating == Some(self.since) {
            state.updating = None;
            self.limiter.changed.notify_waiters();
        }
    }
}

/// The shared record.
impl Limiter {
    /// Starts an update that is due, or plans the next one.
    pub(crate) fn plan_update(&self, now: LocalTime, mut state: StateGuard<'_>) {
        if self.shared.is_none() {
            return;
        }
        match state.member.update_at(state.queue.waiting() as u64) {
            Some(at) if at <= now => {
                drop(state);
                self.start_update();
            }
            Some(at)
                if state
                    .planned
                    .is_none_or(|planned| at < planned || planned < now) =>
            {
                let (Some(limiter), Ok(runtime)) = (self.this.upgrade(), Handle::try_current())
                else {
                    return;
                };
                state.planned = Some(at);
                drop(state);
                let wake = self.instant(at);
                let planned = Planned { limiter, at };
                runtime.spawn(async move {
                    sleep_until(wake).await;
                    if let Some((now, state)) = planned.take() {
                        planned.limiter.plan_update(now, state);
                    }
                });
            }
            _ => {}
        }
    }

    /// Updates the record, unless an update is in progress. A store on this machine has finished when
    /// this returns.
    pub(crate) fn start_update(&self) {
        let (Some(limiter), Ok(runtime)) = (self.this.upgrade(), Handle::try_current()) else {
            return;
        };
        if !self.begin_update() {
            return;
        }
        let mut updating = Box::pin(async move { limiter.update(Member::report).await });
        let mut context = Context::from_waker(Waker::noop());
        if updating.as_mut().poll(&mut context).is_pending() {
            runtime.spawn(updating);
        }
    }

    /// Updates the record now, both ways, for a process that may end.
    pub(crate) async fn synchronize(&self) {
        while !self.begin_update() {
            sleep(Duration::from_millis(5)).await;
        }
        self.update(Member::last_report).await;
    }

    /// Returns whether no other update is in progress.
    fn begin_update(&self) -> bool {
        let (now, mut state) = self.lock();
        let is_free = state
            .updating
            .is_none_or(|since| now >= since.plus(STALE_UPDATE));
        if is_free {
            state.updating = Some(now);
        }
        is_free
    }

    async fn update(&self, report: fn(&mut Member, LocalTime, u64, f64) -> Report) {
        let Some(shared) = &self.shared else { return };
        let (report, me, policy, _updating) = {
            let (now, mut state) = self.lock();
            let updating = state.updating.map(|since| Updating {
                limiter: self,
                since,
            });
            let waiting = state.queue.waiting() as u64;
            let report = report(&mut state.member, now, waiting, random_part());
            (report, state.member.id, state.policy, updating)
        };
        let mut result = Err("the store did not apply the change");
        let mut apply = |current: Option<&[u8]>, at: StoreTime| {
            let wall = ServiceTime::from(clock::wall());
            let mut now = self.now();
            let shift = at.since.0.saturating_sub(now.0);
            // Rounding errors do not move the ends of windows.
            let shift = if shift.unsigned_abs() > MAX_ROUNDING {
                shift
            } else {
                0
            };
            now = now.moved(shift);
            match update_record(
                current,
                (at, now, wall),
                (me, &report.moved(shift)),
                &policy,
                |other| shared.store.is_alive(&shared.key, other).unwrap_or(true),
                // After a jump of the store's clock, the copy's times are wrong.
                || self.lock().1.member.copy().filter(|_| shift == 0),
            ) {
                Ok((record, ledger, granted)) => {
                    result = Ok((ledger, shift, granted));
                    record
                }
                Err(problem) => {
                    result = Err(problem);
                    current.unwrap_or_default().to_vec()
                }
            }
        };
        let change = Change::new(me, &mut apply);
        let updated = timeout(UPDATE_TIMEOUT, shared.store.update(&shared.key, change)).await;
        let (mut now, mut state) = self.lock();
        if let Ok((_, shift, _)) = result {
            self.ahead.fetch_add(shift, Ordering::Relaxed);
            now = now.moved(shift);
            state.member.shift(shift);
        }
        let problem = match (updated, &result) {
            (Ok(Ok(())), Ok(_)) => None,
            (Ok(Ok(())), Err(problem)) => Some((*problem).to_owned()),
            (Ok(Err(error)), _) => Some(error.to_string()),
            (Err(_), _) => Some("it does not answer".to_owned()),
        };
        match result {
            Ok((ledger, _, granted)) if problem.is_none() => {
                state
                    .member
                    .updated(now, ledger, report.given_back, granted);
            }
            result => state
                .member
                .update_failed(now, result.ok().map(|(ledger, ..)| ledger)),
        }
        let store = shared.store.location();
        match (&state.problem, &problem) {
            (None, Some(problem)) => tracing::warn!(%store, problem, "rate limits are not shared"),
            (Some(was), None) => tracing::info!(%store, was, "rate limits are shared again"),
            _ => {}
        }
        state.changes += u64::from(state.problem.is_some() != problem.is_some());
        state.problem = problem;
        state.updating = None;
        self.after_change(now, state);
    }

    /// Returns the store's status if it has changed since `seen`.
    pub(crate) fn store_status_change(&self, seen: &AtomicU64) -> Option<SharedStatus> {
        self.shared.as_ref()?;
        let (now, state) = self.lock();
        let is_new = seen.swap(state.changes, Ordering::Relaxed) != state.changes;
        self.shared_status(&state, now).filter(|_| is_new)
    }

    pub(crate) fn shared_status(&self, state: &State, now: LocalTime) -> Option<SharedStatus> {
        self.shared.as_ref().map(|shared| SharedStatus {
            location: shared.store.location().into_owned(),
            members: u32::try_from(state.member.ledger.members(now)).unwrap_or(u32::MAX),
            problem: state.problem.clone(),
        })
    }
}
