//! The limiter of one key: calls acquire a permit, send, and observe the response.
//!
//! The engine decides who may send. It changes only under the limiter's lock, and every change also
//! grants what may be sent then, so no waiter depends on another one being polled. A grant is a
//! reservation in a waiter's channel; it lapses if the waiter is not polled in time.
//!
//! Where members share a record, an update may be due. Any caller that notices that starts it.

mod acquire;
#[cfg(feature = "shared-limits")]
mod host;
mod snapshot;
mod wait;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, Weak};
#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard};

// Under the model checker, each lock is a point where another task may run.
#[cfg(shuttle)]
use shuttle::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) use self::acquire::{Acquire, Permit};
pub(crate) use self::wait::Wait;
use super::logged::LoggedBlocks;
use super::queue::Queue;
use super::quota::clock::{LocalTime, ServiceTime};
use super::quota::decision::Decision;
use super::quota::policy::Policy;
use super::quota::reading::Block;
use super::shared::engine::Engine;
use super::shared::exchange::{Exchange, ExchangeState};
use super::shared::store::StoreError;
use super::time::{Clock, TimeSource};
use super::view::{Blocked, RateLimits, SharedStatus};
use crate::clock;

/// The limiter of one key at one origin.
pub(crate) struct Limiter {
    /// For updates of the record, which outlive the call that starts them.
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
    /// The policy of the last call. Calls without limits need no grants.
    policy: Policy,
    /// What the exchange with the record is doing.
    progress: ExchangeState,
}

type StateGuard<'s> = MutexGuard<'s, State>;

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

    /// Returns a snapshot of what is known, for display.
    pub(crate) fn view(&self, policy: &Policy) -> RateLimits {
        self.read_record();
        let (now, state) = self.lock_own();
        RateLimits {
            waiting: state.queue.waiting(),
            shared: self.status(&state, now),
            ..snapshot::limits(&state.engine, now, policy)
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

    /// Changes the engine, and grants what may be sent after it.
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

    fn lock(&self) -> (LocalTime, StateGuard<'_>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (self.clock.now(), state)
    }

    /// Locks the state, and detects whether this process is the child of a fork. That takes a system
    /// call, so only the first lock of each call and of each update does it.
    fn lock_own(&self) -> (LocalTime, StateGuard<'_>) {
        let (now, mut state) = self.lock();
        if let Some(exchange) = &self.exchange {
            let State {
                engine, progress, ..
            } = &mut *state;
            exchange.notice_fork(engine, progress, now);
        }
        (now, state)
    }

    /// Locks the state, and detects a fork and a suspension of the machine. Checks for a suspension
    /// now if `must` is set, otherwise only at intervals.
    fn lock_awake(&self, must: bool) -> (LocalTime, StateGuard<'_>) {
        let (now, mut state) = self.lock_own();
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
        let has_read = exchange.has_read(&self.lock_own().1.engine);
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
