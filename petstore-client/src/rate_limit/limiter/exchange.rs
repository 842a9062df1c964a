//! The exchanges of a limiter with its store. At most one is in progress. It carries all outcomes since the
//! last one, and asks for as many permits as calls wait. Meanwhile, new calls gather for the next one.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::Limiter;
use super::alone::STORE_TIMEOUT;
use crate::rate_limit::quota::instant::{LedgerTime, SECOND, duration};
use crate::rate_limit::quota::{Answer, Report};
use crate::rate_limit::store::StoreError;

/// How soon it is checked whether an exchange in progress has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// How often it is checked whether a test has moved its clock.
const WATCH_INTERVAL: Duration = Duration::from_millis(25);

impl Limiter {
    /// Makes or plans the exchange that is due after a change.
    pub(super) fn follow(self: &Arc<Self>, now: LedgerTime) {
        if self.store.is_local() {
            self.exchange(now);
        } else {
            self.exchange_later(now);
        }
    }

    /// Makes the exchanges that are due, and plans the next one.
    pub(super) fn exchange(self: &Arc<Self>, now: LedgerTime) {
        loop {
            let mut state = self.state();
            if state.notice_fork() {
                self.alarm.reset();
            }
            state.expire(now);
            if state.is_exchanging(now) {
                return;
            }
            match state.due(now) {
                None => return,
                Some(due) if due > now => {
                    drop(state);
                    return self.exchange_later(now);
                }
                Some(_) => {}
            }
            if let Some(begins_block) = state.exchange_alone(now) {
                let must_retry = state.must_retry(now);
                drop(state);
                if begins_block {
                    self.changed.notify_waiters();
                }
                if must_retry {
                    self.retry();
                }
                continue;
            }
            let begun = state.begin_exchange(now);
            drop(state);
            let exchange = Exchange::new(Arc::clone(self), begun);
            match self.store.try_exchange(&exchange.report, now) {
                Some(result) => drop(exchange.finish(result, now)),
                None => {
                    // Without a runtime, the next call makes the exchange.
                    if let Ok(runtime) = Handle::try_current() {
                        runtime.spawn(exchange.run());
                    }
                    return;
                }
            }
        }
    }

    /// Makes an exchange with the store now, and waits for it.
    pub(super) async fn exchange_now(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Report),
    ) -> Result<(), StoreError> {
        let (number, mut report) = loop {
            {
                let mut state = self.state();
                let now = self.clock.now();
                state.notice_fork();
                if !state.is_exchanging(now) {
                    state.expire(now);
                    break state.begin_exchange(now);
                }
            }
            sleep(CHECK_INTERVAL).await;
        };
        change(&mut report);
        let exchange = Exchange::new(Arc::clone(self), (number, report));
        let result = self.try_store(&exchange.report).await;
        let now = self.clock.now();
        let result = exchange.finish(result, now);
        self.exchange(now);
        result
    }

    async fn try_store(&self, report: &Report) -> Result<Answer, StoreError> {
        loop {
            let began = self.clock.now();
            let exchange = self.store.exchange(report, began);
            if let Ok(result) = timeout(duration(STORE_TIMEOUT), exchange).await {
                return result;
            }
            // After a longer time, it was this process that was stopped.
            if self.clock.now().since(began) < STORE_TIMEOUT + SECOND {
                return Err(StoreError::new("it does not answer"));
            }
        }
    }

    /// Tries a store again that is away.
    fn retry(self: &Arc<Self>) {
        if let Ok(runtime) = Handle::try_current() {
            let limiter = Arc::clone(self);
            runtime.spawn(async move {
                // If it fails, a later exchange tries again.
                _ = limiter.exchange_now(|_| {}).await;
            });
        }
    }

    /// Plans the next exchange. It runs after the tasks that are ready now.
    pub(super) fn exchange_later(self: &Arc<Self>, now: LedgerTime) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let state = self.state();
        if state.is_exchanging(now) {
            return;
        }
        let Some(due) = state.due(now) else { return };
        drop(state);
        if self.alarm.set(due, now) {
            // If the runtime is ending, this drops the driver.
            let driver = Driver {
                limiter: Arc::clone(self),
                has_ended: false,
            };
            runtime.spawn(driver.run());
        }
    }
}

/// An exchange in progress. If its runtime ends, the next call makes another one.
struct Exchange {
    limiter: Arc<Limiter>,
    number: u64,
    report: Report,
    has_ended: bool,
}

impl Exchange {
    fn new(limiter: Arc<Limiter>, (number, report): (u64, Report)) -> Self {
        Self {
            limiter,
            number,
            report,
            has_ended: false,
        }
    }

    async fn run(self) {
        let limiter = Arc::clone(&self.limiter);
        let result = limiter.try_store(&self.report).await;
        let now = limiter.clock.now();
        drop(self.finish(result, now));
        limiter.exchange(now);
    }

    fn finish(
        mut self,
        result: Result<Answer, StoreError>,
        now: LedgerTime,
    ) -> Result<(), StoreError> {
        self.has_ended = true;
        let limiter = &self.limiter;
        let mut state = limiter.state();
        let was_alone = state.is_alone();
        let (result, begins_block) = match result {
            Ok(answer) => {
                let begins_block = state.succeed(self.number, &self.report, &answer, now);
                (Ok(()), begins_block)
            }
            Err(error) => {
                let last_seen = || limiter.store.last_seen(now);
                state.fail(self.number, &self.report, error.to_string(), now, last_seen);
                (Err(error), false)
            }
        };
        let has_changed = state.is_alone() != was_alone;
        drop(state);
        if begins_block {
            limiter.changed.notify_waiters();
        }
        if has_changed {
            limiter.log_store(result.as_ref().err());
        }
        result
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut state = self.limiter.state();
            let now = self.limiter.clock.now();
            state.cancel(self.number, &self.report, now);
            drop(state);
            self.limiter.exchange_later(now);
        }
    }
}

/// The task that makes exchanges that are due later. It ends when none is.
struct Driver {
    limiter: Arc<Limiter>,
    /// Whether it has ended by itself, and not with its runtime.
    has_ended: bool,
}

impl Driver {
    async fn run(mut self) {
        let limiter = Arc::clone(&self.limiter);
        while let Some(wakes) = limiter.alarm.wakes() {
            let now = limiter.clock.now();
            if wakes > now {
                let mut wait = duration(wakes.since(now));
                if limiter.clock.is_of_service() {
                    wait = wait.min(WATCH_INTERVAL);
                }
                tokio::select! {
                    () = sleep(wait) => {}
                    () = limiter.alarm.is_earlier() => continue,
                }
            } else {
                yield_now().await;
            }
            limiter.alarm.clear();
            limiter.exchange(limiter.clock.now());
        }
        self.has_ended = true;
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.has_ended {
            self.limiter.alarm.reset();
        }
    }
}
