//! The gate itself: the state behind its lock, and who is let through next.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
// Under the model checker each lock is a point where another task may come first.
#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::queue::{Place, Queue, Turn};
use super::store::{Page, Store};
use crate::backoff::Schedule;
use crate::clock;
use crate::error::Quota;
use crate::headers::{date, rate_limit, retry_after};
use crate::quota::{Block, Head, Keeper, Local, Rate, Ticket, Time, Verdict, micros};

/// The first addition to the wait for a refusal that follows another, and the longest.
const FIRST_EXTRA: Duration = Duration::from_secs(2);
const LONGEST_EXTRA: Duration = Duration::from_secs(15 * 60);

/// A quota that is not whole again for longer cannot be right: they are counted by the minute and
/// the day, and one by the month is thinkable.
const LONGEST_WINDOW: Duration = Duration::from_secs(32 * 24 * 3600);

/// How often a call that waits for requests of other processes looks, in microseconds.
const LOOK_AGAIN: i64 = 20_000;

/// A block, in the terms of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) until: Instant,
    pub(crate) until_service: std::time::SystemTime,
    pub(crate) quota: Quota,
}

/// All that the gate knows, locked: in this process, and where processes share it, among them.
#[derive(Debug)]
pub(super) struct Guard<'g> {
    gate: &'g Gate,
    inner: MutexGuard<'g, Inner>,
    page: Option<Page>,
}

/// What all calls with one key to one origin pass.
#[derive(Debug)]
pub(crate) struct Gate {
    start: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) keeper: Keeper,
    /// What processes share, where they do.
    store: Option<Store>,
    pub(super) queue: Queue,
    /// The additions to waits, while refusals follow one another.
    extra: Option<Schedule>,
    /// The first in line that owns the timer, and when it rings.
    armed: Option<(Place, Local)>,
    /// Those who may not wait until then have been told.
    swept: Option<Time>,
}

impl Gate {
    pub(crate) fn new(store: Option<Store>) -> Self {
        let inner = Inner {
            keeper: Keeper::new(Local(0), clock::wall().into()),
            store,
            queue: Queue::default(),
            extra: None,
            armed: None,
            swept: None,
        };
        Self { start: clock::now(), inner: Mutex::new(inner) }
    }

    /// Takes in that the last refusal was a ban.
    pub(crate) fn banned(&self) {
        self.lock().keeper.banned();
    }

    /// Takes in what came of a request: the head of an answer, or nothing.
    pub(super) fn observe(
        &self,
        ticket: Ticket,
        sent: Local,
        head: Option<(StatusCode, &HeaderMap)>,
    ) -> Option<Hold> {
        let now = self.now();
        let mut inner = self.lock();
        let block = match head {
            Some((status, headers)) => inner.answered(ticket, sent, now, status, headers),
            None => {
                inner.keeper.state.lost(ticket);
                None
            }
        };
        let hold = block.map(|block| self.in_process(&inner, block));
        self.pass_on(inner);
        hold
    }

    /// Takes back a permit with which nothing was sent.
    pub(super) fn unused(&self, ticket: Ticket) {
        let mut inner = self.lock();
        inner.keeper.state.unused(ticket);
        self.pass_on(inner);
    }

    /// Lets others through after a change, and wakes them once the lock is released.
    pub(super) fn pass_on(&self, mut inner: Guard<'_>) {
        if inner.queue.waiting() > 0 {
            let woken = inner.let_through(self.now());
            drop(inner);
            woken.into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn in_process(&self, inner: &Inner, block: Block) -> Hold {
        Hold {
            until: self.instant(inner.keeper.surely(block.until)),
            until_service: block.named.system(),
            quota: block.quota,
        }
    }

    pub(super) fn now(&self) -> Local {
        self.local(clock::now())
    }

    pub(super) fn local(&self, at: Instant) -> Local {
        Local(micros(at.saturating_duration_since(self.start)))
    }

    pub(super) fn instant(&self, at: Local) -> Instant {
        clock::after(self.start, at.since(Local(0)))
    }

    pub(super) fn lock(&self) -> Guard<'_> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let page = inner.store.is_some().then(|| inner.open(self.now())).flatten();
        Guard { gate: self, inner, page }
    }
}

impl Deref for Guard<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let Some(page) = self.page.take() else { return };
        let note = self.inner.keeper.note(self.gate.now(), clock::wall().into());
        if let Err(problem) = page.write(&note) {
            tracing::warn!(%problem, "rate limits could not be shared");
            let now = self.gate.now();
            self.inner.store.iter_mut().for_each(|store| store.rest(now));
            self.inner.keeper.on_its_own(now);
        }
    }
}

impl Inner {
    /// Takes over what other processes have written.
    fn open(&mut self, now: Local) -> Option<Page> {
        let store = self.store.as_mut()?;
        let Some(page) = store.open(now) else {
            self.keeper.on_its_own(now);
            return None;
        };
        if !page.text().is_empty() && !self.keeper.take_over(page.text(), now, clock::wall().into())
        {
            store.is_damaged();
        }
        Some(page)
    }

    /// Returns when to look again whether others' requests are over, of which nobody tells.
    pub(super) fn look_again(&self, now: Local) -> Option<Local> {
        self.store.is_some().then(|| Local(now.0.saturating_add(LOOK_AGAIN)))
    }

    /// Lets through as many as may go now, first come, first served, and tells those whose wait
    /// has become too long. Wakes nobody else but the first in line, where the timer has to be set.
    fn let_through(&mut self, now: Local) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(first) = self.queue.first() {
            let Some(policy) = self.queue.get(first).map(|waiter| waiter.policy) else { break };
            match self.keeper.verdict(now, &policy) {
                Verdict::Go(pass) => {
                    let ticket = self.keeper.grant(now, pass);
                    woken.extend(self.queue.settle(first, Turn::Granted(ticket)));
                }
                Verdict::Blocked(block) => {
                    if self.sweep(block, &mut woken) {
                        continue;
                    }
                    self.arm(first, self.keeper.surely(block.until), &mut woken);
                    break;
                }
                Verdict::Paced(at) | Verdict::Settling(at) => {
                    self.arm(first, self.keeper.surely(at), &mut woken);
                    break;
                }
                Verdict::Busy(_) => {
                    if let Some(at) = self.look_again(now) {
                        self.arm(first, at, &mut woken);
                    }
                    break;
                }
            }
        }
        woken
    }

    /// Takes in that the first in line has set its timer.
    pub(super) fn armed(&mut self, place: Place, at: Local) {
        self.armed = Some((place, at));
    }

    /// Takes in that nobody's timer is set.
    pub(super) fn disarmed(&mut self) {
        self.armed = None;
    }

    /// Wakes the first in line to set its timer, unless it has set one that rings in time.
    fn arm(&mut self, first: Place, at: Local, woken: &mut Vec<Waker>) {
        if matches!(self.armed, Some((place, set)) if place == first && set <= at) {
            return;
        }
        self.armed = Some((first, at));
        woken.extend(self.queue.get(first).map(|waiter| waiter.waker.clone()));
    }

    /// Tells all whose wait has become too long; returns whether the first in line was among them.
    fn sweep(&mut self, block: Block, woken: &mut Vec<Waker>) -> bool {
        if self.swept == Some(block.until) {
            return false;
        }
        self.swept = Some(block.until);
        let first = self.queue.first();
        let late = self.queue.too_late_for(self.keeper.surely(block.until));
        for &place in &late {
            woken.extend(self.queue.settle(place, Turn::TooLong(block)));
        }
        first.is_some_and(|first| late.contains(&first))
    }

    fn answered(
        &mut self,
        ticket: Ticket,
        sent: Local,
        now: Local,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Option<Block> {
        let date = date(headers);
        let service = date.unwrap_or_else(|| self.keeper.service_time(now).system());
        let rate = rate_limit(headers, service).filter(|rate| {
            rate.reset.duration_since(service).unwrap_or_default() <= LONGEST_WINDOW
        });
        let rate = rate.map(|rate| Rate {
            limit: rate.limit,
            remaining: rate.remaining,
            reset: rate.reset.into(),
        });
        let head = Head {
            status: status.as_u16(),
            date: date.map(Time::from),
            rate,
            retry_after: retry_after(headers, service),
        };
        let refused = matches!(head.status, 429 | 503);
        let follows = refused && self.keeper.state.follows_refusal(ticket);
        let extra = if follows {
            self.extra.get_or_insert_with(|| Schedule::new(FIRST_EXTRA, LONGEST_EXTRA)).next()
        } else {
            Duration::ZERO
        };
        let block = self.keeper.answered(ticket, sent, now, &head, extra);
        if self.keeper.state.is_in_order() {
            self.extra = None;
        }
        block
    }
}
