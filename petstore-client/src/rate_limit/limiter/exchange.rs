//! The exchanges of a limiter with its store. At most one is in progress. It carries all outcomes since the
//! last one, and asks for as many permits as calls wait. Meanwhile, new calls gather for the next one.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::Limiter;
use crate::rate_limit::quota::time::{LedgerTime, duration, micros};
use crate::rate_limit::quota::{Answer, Report};
use crate::rate_limit::store::StoreError;

/// The time limit of an exchange.
const STORE_TIMEOUT: Duration = Duration::from_secs(3);
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
            state.notice_fork();
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
            let must_retry = state.exchange_alone(now, micros(STORE_TIMEOUT));
            if let Some(must_retry) = must_retry {
                let is_news = state.take_news();
                drop(state);
                if is_news {
                    self.changed.notify_waiters();
                }
                if must_retry {
                    self.retry();
                }
                continue;
            }
            let report = state.begin_exchange(now);
            drop(state);
            let exchange = Exchange::new(Arc::clone(self), report);
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
        let mut report = loop {
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
        let exchange = Exchange::new(Arc::clone(self), report);
        let result = self.try_store(&exchange.report).await;
        let now = self.clock.now();
        let result = exchange.finish(result, now);
        self.exchange(now);
        result
    }

    async fn try_store(&self, report: &Report) -> Result<Answer, StoreError> {
        let result = timeout(STORE_TIMEOUT, self.store.exchange(report)).await;
        result.unwrap_or_else(|_| Err(StoreError::new("it does not answer")))
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

    /// Sees to it that the driver makes the next exchange, after the tasks that can run now.
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
        if self.alarm.set(due) {
            // If the runtime is ending, this drops the driver.
            runtime.spawn(Driver(Arc::clone(self)).run());
        }
    }
}

/// An exchange in progress. If its runtime ends, the next call makes another one.
struct Exchange {
    limiter: Arc<Limiter>,
    report: Report,
    has_ended: bool,
}

impl Exchange {
    fn new(limiter: Arc<Limiter>, report: Report) -> Self {
        Self {
            limiter,
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
        state.end_exchange();
        let result = match result {
            Ok(answer) => {
                state.succeed(&self.report, &answer, now);
                Ok(())
            }
            Err(error) => {
                let last_seen = || limiter.store.last_seen();
                state.fail(&self.report, error.to_string(), now, last_seen);
                Err(error)
            }
        };
        let is_news = state.take_news();
        drop(state);
        if is_news {
            limiter.changed.notify_waiters();
        }
        result
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.has_ended {
            let mut state = self.limiter.state();
            let now = self.limiter.clock.now();
            state.end_exchange();
            state.change(now);
        }
    }
}

/// The task that makes exchanges that are due later. It ends when none is.
struct Driver(Arc<Limiter>);

impl Driver {
    async fn run(self) {
        let limiter = &self.0;
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
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.alarm.end();
    }
}
