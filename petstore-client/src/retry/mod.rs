//! Decides whether to retry a failed attempt.

mod budget;
mod policy;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::time::Instant;

use self::budget::BudgetState;
pub use self::budget::RetryBudget;
pub use self::policy::RetryPolicy;
pub use crate::backoff::Backoff;
use crate::backoff::Schedule;
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::request::Request;

/// A failed attempt, for a classifier
/// ([`RetryPolicy::classifier`]).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FailedAttempt<'a> {
    /// Why it failed.
    pub error: &'a Error,
    /// The operation: `listPets`, or the method and path.
    pub operation: &'a str,
    /// The method.
    pub method: &'a Method,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether sending the request twice has the same effect as sending it once.
    pub idempotent: bool,
    /// Whether the client would retry it, if attempts, time and budget allow that, and after a 401 if the
    /// provider has another key.
    pub would_retry: bool,
}

/// The advice of a classifier after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum RetryAdvice {
    /// Use the client's own decision.
    #[default]
    Default,
    /// Retry if that is safe: the request is idempotent, or was not processed. Limits on attempts,
    /// time, budget and rate still apply.
    Retry,
    /// Retry even if the service may process the request twice.
    RetryUnsafe,
    /// Fail now.
    Stop,
}

pub(crate) type Classifier = Arc<dyn Fn(&FailedAttempt<'_>) -> RetryAdvice + Send + Sync>;

/// The retries of a client.
pub(crate) struct Retries {
    max_attempts: u32,
    backoff: Backoff,
    classifier: Option<Classifier>,
    budget: Mutex<BudgetState>,
    started: Instant,
}

impl Retries {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        Self {
            max_attempts: policy.attempts,
            backoff: policy.backoff,
            classifier: policy.classifier,
            budget: Mutex::new(BudgetState::new(policy.budget)),
            started: clock::now(),
        }
    }

    /// Returns how many attempts a call has that does not say.
    pub(crate) fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Returns the delays of a call.
    pub(crate) fn schedule(&self) -> Schedule {
        self.backoff.schedule()
    }

    /// Counts a call that begins now, until the result is dropped.
    pub(crate) fn begin_call(&self, now: Instant) -> CallInFlight<'_> {
        self.budget().call_began(self.age(now));
        CallInFlight(self)
    }

    /// Decides on a failed attempt.
    pub(crate) fn decide(&self, error: &Error, request: &Request) -> RetryDecision {
        RetryDecision::of(error, request, self.classifier.as_ref())
    }

    /// Uses one retry of the budget. Returns whether one was left.
    pub(crate) fn spend(&self) -> bool {
        let now = self.age(clock::now());
        self.budget().spend(now)
    }

    /// Returns the time since the client was built.
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    fn budget(&self) -> MutexGuard<'_, BudgetState> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in flight, which counts for the budget.
#[must_use = "a call is in flight until this is dropped"]
pub(crate) struct CallInFlight<'r>(&'r Retries);

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        self.0.budget().call_ended();
    }
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    Fail,
    /// Retry with another key.
    Reauthorize,
    /// Retry as soon as the limiter permits it.
    Acquire,
    /// Retry after a delay: the back-off, plus the `Retry-After` of a 5xx.
    BackOff,
}

impl RetryDecision {
    /// Decides on a failed attempt, with the classifier's advice if any. `idempotent` means that
    /// sending the request twice has the same effect as sending it once (RFC 9110, section 9.2.2).
    fn of(error: &Error, request: &Request, classifier: Option<&Classifier>) -> Self {
        let Request {
            operation,
            method,
            idempotent,
            ..
        } = request;
        let idempotent = *idempotent;
        let decision = Self::by_default(error, idempotent);
        let Some(classifier) = classifier else {
            return decision;
        };
        let advice = classifier(&FailedAttempt {
            error,
            operation,
            method,
            attempt: error.attempts(),
            idempotent,
            would_retry: decision != Self::Fail,
        });
        let is_safe = idempotent || !error.may_have_been_processed();
        match (advice, decision) {
            (RetryAdvice::Stop, _) => Self::Fail,
            (RetryAdvice::Retry, Self::Fail) if is_safe => Self::BackOff,
            (RetryAdvice::RetryUnsafe, Self::Fail) => Self::BackOff,
            (_, decision) => decision,
        }
    }

    fn by_default(error: &Error, idempotent: bool) -> Self {
        let is_transient = match error.kind() {
            ErrorKind::RateLimited => return Self::Acquire,
            ErrorKind::Unauthorized => return Self::Reauthorize,
            ErrorKind::Connect | ErrorKind::Timeout | ErrorKind::Interrupted => true,
            _ => match error.status().map(|status| status.as_u16()) {
                // The service refused to process the request so early (RFC 8470, section 5.2). So
                // even a POST can be sent again.
                Some(425) => return Self::BackOff,
                status => matches!(status, Some(408 | 500 | 502 | 503 | 504)),
            },
        };
        if is_transient && (idempotent || !error.was_sent()) {
            Self::BackOff
        } else {
            Self::Fail
        }
    }
}

/// Returns whether the service may have acted on a request that it answered with this status. A 4xx
/// proves that it did not, and so does a redirect. But a 303 may follow a completed action.
pub(crate) fn may_have_acted(status: StatusCode) -> bool {
    let is_refused = status.is_client_error() || status.is_redirection();
    !is_refused || matches!(status.as_u16(), 303 | 408)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::error::{CallStats, ErrorResponse, TimeoutKind};

    fn answered(status: u16) -> Error {
        let mut response = http::Response::new(Bytes::new());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Error::from_response(ErrorResponse::new(response))
    }

    fn request(method: Method) -> Request {
        Request::new("x", method, "http://127.0.0.1".parse().unwrap())
    }

    fn timed_out(sent: bool) -> Error {
        Error::timed_out(TimeoutKind::Attempt, Duration::from_secs(1), sent)
    }

    #[test]
    fn a_classifier_retries_only_what_is_safe_unless_it_says_so() {
        let with = |advice, error: Error, idempotent| {
            let classifier: Classifier = Arc::new(move |_: &FailedAttempt<'_>| advice);
            let request = Request {
                idempotent,
                ..request(Method::POST)
            };
            RetryDecision::of(&error, &request, Some(&classifier)) == RetryDecision::BackOff
        };
        let lost = || {
            let stats = CallStats {
                may_have_acted: true,
                ..CallStats::default()
            };
            timed_out(true).with_stats(stats)
        };
        assert!(with(RetryAdvice::Retry, answered(404), false));
        assert!(!with(RetryAdvice::Retry, lost(), false));
        assert!(with(RetryAdvice::RetryUnsafe, lost(), false));
        assert!(with(RetryAdvice::Default, lost(), true));
        // The client itself does not retry a 501.
        let unsupported = || {
            let stats = CallStats {
                may_have_acted: true,
                ..CallStats::default()
            };
            answered(501).with_stats(stats)
        };
        assert!(!with(RetryAdvice::Default, unsupported(), true));
        assert!(with(RetryAdvice::Retry, unsupported(), true));
        assert!(!with(RetryAdvice::Retry, unsupported(), false));
        assert!(!with(RetryAdvice::Stop, lost(), true));
        let opposite: Classifier = Arc::new(|attempt: &FailedAttempt<'_>| {
            if attempt.would_retry {
                RetryAdvice::Stop
            } else {
                RetryAdvice::RetryUnsafe
            }
        });
        let decide =
            |error: Error| RetryDecision::of(&error, &request(Method::GET), Some(&opposite));
        assert_eq!(decide(lost()), RetryDecision::Fail);
        assert_eq!(decide(answered(404)), RetryDecision::BackOff);
    }
}
