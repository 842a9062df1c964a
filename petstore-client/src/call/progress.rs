//! What limits a call, and what it has used of that.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::limits::CallLimits;
use super::observer::Observer;
use crate::client::closing::Closing;
use crate::clock;
use crate::error::Error;
use crate::rate_limit::{Acquire, Limiter, Permit, Refused};
use crate::request::Request;
use crate::retry::Retries;

/// What limits a call and its retries.
#[derive(Clone, Copy)]
pub(super) struct Rules<'c> {
    /// The request says whether it is idempotent.
    pub(super) request: &'c Request,
    /// The deadline, the number of attempts and the maximum wait.
    pub(super) limits: &'c CallLimits,
    /// The back-off, the budget and the classifier.
    pub(super) retries: &'c Retries,
    /// Whether the client is closed.
    pub(super) closing: &'c Closing,
}

impl Rules<'_> {
    /// Awaits `work`, until the call's deadline, or until the client is closed.
    pub(super) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.closing.unless_closed(self.limits.in_time(work)).await
    }
}

/// What a call has used of its limits.
pub(super) struct Progress<'c> {
    rules: Rules<'c>,
    /// The used part of `max_wait`.
    waited: Duration,
    has_reauthorized: bool,
    /// The call's place in the limiter's queue. Retries keep it.
    place: Option<u64>,
}

impl<'c> Progress<'c> {
    pub(super) fn new(rules: Rules<'c>) -> Self {
        Self {
            rules,
            waited: Duration::ZERO,
            has_reauthorized: false,
            place: None,
        }
    }

    /// Waits until the limiter permits a request. Returns the permit and the duration of the wait.
    pub(super) async fn acquire(
        &mut self,
        limiter: &Arc<Limiter>,
        observer: &mut Observer<'_>,
    ) -> Result<(Permit, Duration), Error> {
        let limits = self.rules.limits;
        let request = Acquire {
            place: self.place,
            priority: limits.priority(),
            max_wait: self.allowed_wait(),
            deadline: limits.deadline(),
            forced: self.rules.request.forced,
            lease: limits.lease(),
        };
        let acquiring = limiter.acquire(request, |wait| observer.waiting(wait));
        let acquired = observer.watch_store(limiter, acquiring).await;
        let waited = match &acquired {
            Ok(permit) => permit.waited(),
            Err(refused) => refused.waited,
        };
        observer.waited(waited);
        self.waited += waited;
        match acquired {
            Ok(permit) => {
                self.place = Some(permit.place());
                Ok((permit, waited))
            }
            Err(refused) => Err(self.refused(refused)),
        }
    }

    /// Fails if no attempt is left, or if a 429 blocks for longer than the call may wait.
    pub(super) fn check_block(&self, error: Error) -> Result<(), Error> {
        if !self.may_try_again(&error) {
            return Err(error);
        }
        let now = clock::now();
        match error.retry_after() {
            Some(wait) if clock::after(now, wait) > self.latest_unblocked(now) => {
                Err(error.with_allowed_wait(self.time_left(now)))
            }
            _ => Ok(()),
        }
    }

    /// Returns how long to wait before another attempt: the back-off plus the `Retry-After` of a
    /// 5xx. It delays only this call. Returns `None` if the attempts, the time or the budget are
    /// used up.
    pub(super) fn delay(&mut self, error: &Error, backoff: Duration) -> Option<Duration> {
        let asked = error.retry_after().unwrap_or_default();
        let delay = backoff.saturating_add(asked);
        let now = clock::now();
        let end = clock::after(now, delay);
        if !self.may_try_again(error) || end >= self.rules.limits.deadline() {
            return None;
        }
        if !asked.is_zero() && end > self.latest_unblocked(now) {
            return None;
        }
        if !self.rules.retries.spend() {
            return None;
        }
        self.waited += asked;
        Some(delay)
    }

    /// Returns whether the call may use another key. It may do so once.
    pub(super) fn may_reauthorize(&mut self) -> bool {
        !std::mem::replace(&mut self.has_reauthorized, true)
    }

    fn may_try_again(&self, error: &Error) -> bool {
        // An attempt whose key was replaced does not count.
        let counted = error.attempts() - u32::from(self.has_reauthorized);
        counted < self.rules.limits.max_attempts()
    }

    /// Returns the latest instant until which rate limits may block the next attempt.
    fn latest_unblocked(&self, now: Instant) -> Instant {
        clock::after(now, self.allowed_wait()).min(self.rules.limits.deadline())
    }

    /// Returns how long the call may still wait for rate limits.
    fn allowed_wait(&self) -> Duration {
        let max_wait = self.rules.limits.max_wait();
        max_wait.saturating_sub(self.waited)
    }

    /// Returns how long a block may still last.
    fn time_left(&self, now: Instant) -> Duration {
        self.latest_unblocked(now).saturating_duration_since(now)
    }

    fn refused(&self, refused: Refused) -> Error {
        let limits = self.rules.limits;
        let Some(wait) = refused.wait else {
            return limits.timed_out(false);
        };
        match wait.blocked {
            Some(blocked) => {
                let left = self.time_left(clock::now());
                Error::rate_limited(blocked).with_allowed_wait(left)
            }
            None => Error::waited_in_vain(wait.reason, limits.max_wait()),
        }
    }
}
