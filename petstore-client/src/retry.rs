//! Decides whether to retry a failed attempt.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::time::Instant;

pub use crate::backoff::Backoff;
use crate::backoff::Schedule;
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::request::Request;

/// A failed attempt, for a classifier
/// ([`ClientBuilder::retry_classifier`](crate::ClientBuilder::retry_classifier)).
#[derive(Debug)]
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
    /// Whether the client would retry it, if attempts, time and budget allow that.
    pub would_retry: bool,
}

/// The advice of a classifier after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

pub(crate) type Classifier = Box<dyn Fn(&FailedAttempt<'_>) -> RetryAdvice + Send + Sync>;

/// The retry policy of a client.
pub(crate) struct Retries {
    backoff: Backoff,
    classifier: Option<Classifier>,
    budget: Mutex<BudgetState>,
    started: Instant,
}

impl Retries {
    pub(crate) fn new(
        backoff: Backoff,
        classifier: Option<Classifier>,
        budget: RetryBudget,
    ) -> Self {
        let (budget, started) = (Mutex::new(BudgetState::new(budget)), clock::now());
        Self {
            backoff,
            classifier,
            budget,
            started,
        }
    }

    /// Returns the delays of a call.
    pub(crate) fn schedule(&self) -> Schedule {
        self.backoff.schedule()
    }

    /// Counts a call, until the result is dropped.
    pub(crate) fn begin_call(&self) -> CallInFlight<'_> {
        let now = self.now();
        self.budget().call_began(now);
        CallInFlight(self)
    }

    /// Decides on a failed attempt.
    pub(crate) fn decide(&self, error: &Error, request: &Request) -> RetryDecision {
        RetryDecision::of(error, request, self.classifier.as_ref())
    }

    /// Uses one retry of the budget. Returns whether one was left.
    pub(crate) fn spend(&self) -> bool {
        let now = self.now();
        self.budget().spend(now)
    }

    /// Returns the time since the client was built.
    fn now(&self) -> Duration {
        clock::now().saturating_duration_since(self.started)
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
            _ => {
                let status = error.status().map(|status| status.as_u16());
                matches!(status, Some(408 | 500 | 502 | 503 | 504))
            }
        };
        if is_transient && (idempotent || !error.was_sent()) {
            Self::BackOff
        } else {
            Self::Fail
        }
    }
}

/// Returns whether the service may have acted on a request that it answered with this status. Only
/// a 4xx proves that it did not. A 303, for example, may follow a completed action.
pub(crate) fn may_have_acted(status: StatusCode) -> bool {
    !status.is_client_error() || status == StatusCode::REQUEST_TIMEOUT
}

/// Limits the retries of all calls together, to protect a failing service.
///
/// Over the last 5 to 10 seconds, it allows [`ratio`](Self::ratio) retries per call, plus ten times
/// [`min_per_second`](Self::min_per_second). Three retries for each call in flight are always
/// allowed, so that all calls survive a restart of the server. Waits for rate
/// limits and retries after a 429 do not count.
///
/// ```
/// use petstore_client::retry::RetryBudget;
///
/// let generous = RetryBudget::new().ratio(0.5).min_per_second(50);
/// # let _ = generous;
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct RetryBudget {
    ratio: f64,
    min_per_second: u32,
}

impl RetryBudget {
    /// Creates the default: 0.2 retries per call, and 10 per second.
    pub fn new() -> Self {
        Self {
            ratio: 0.2,
            min_per_second: 10,
        }
    }

    /// Sets the retries per call, from 0 to 1,000.
    pub fn ratio(mut self, retries: f64) -> Self {
        self.ratio = retries;
        self
    }

    /// Sets the retries per second that are always allowed.
    pub fn min_per_second(mut self, retries: u32) -> Self {
        self.min_per_second = retries;
        self
    }

    /// Allows every retry.
    pub fn unlimited() -> Self {
        Self {
            ratio: f64::INFINITY,
            min_per_second: u32::MAX,
        }
    }

    /// Returns why the budget is invalid, if it is.
    pub(crate) fn problem(self) -> Option<String> {
        let is_valid = self.ratio == f64::INFINITY || (0.0..=1_000.0).contains(&self.ratio);
        (!is_valid).then(|| format!("its ratio is {}, and must be from 0 to 1,000", self.ratio))
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self::new()
    }
}

/// The length of a period in seconds. The current period and the one before count, which is 5 to 10
/// s.
const PERIOD: u32 = 5;
/// The retries that are always allowed per call in flight.
const RETRIES_IN_FLIGHT: u32 = 3;

/// The used part of a budget.
#[derive(Debug)]
struct BudgetState {
    budget: RetryBudget,
    in_flight: u32,
    period: u64,
    /// Calls and retries in this period and the previous one.
    counts: [Counts; 2],
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    calls: u32,
    retries: u32,
}

impl BudgetState {
    fn new(budget: RetryBudget) -> Self {
        Self {
            budget,
            in_flight: 0,
            period: 0,
            counts: Default::default(),
        }
    }

    fn call_began(&mut self, now: Duration) {
        self.start_period(now);
        self.in_flight += 1;
        self.counts[0].calls += 1;
    }

    fn call_ended(&mut self) {
        self.in_flight -= 1;
    }

    /// Uses one retry of the budget. Returns whether one was left.
    fn spend(&mut self, now: Duration) -> bool {
        self.start_period(now);
        let RetryBudget {
            ratio,
            min_per_second,
        } = self.budget;
        if ratio.is_infinite() {
            return true;
        }
        let [current, last] = self.counts;
        let by_traffic = f64::from(current.calls + last.calls) * ratio
            + f64::from(min_per_second) * f64::from(2 * PERIOD);
        let allowed = by_traffic.max(f64::from(self.in_flight) * f64::from(RETRIES_IN_FLIGHT));
        let is_left = f64::from(current.retries + last.retries) < allowed;
        self.counts[0].retries += u32::from(is_left);
        is_left
    }

    fn start_period(&mut self, now: Duration) {
        let period = now.as_secs() / u64::from(PERIOD);
        if period > self.period {
            let is_next = period == self.period + 1;
            let last = if is_next {
                self.counts[0]
            } else {
                Counts::default()
            };
            self.counts = [Counts::default(), last];
            self.period = period;
        }
    }
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
            let classifier: Classifier = Box::new(move |_: &FailedAttempt<'_>| advice);
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
        assert!(!with(RetryAdvice::Stop, lost(), true));
        let opposite: Classifier = Box::new(|attempt: &FailedAttempt<'_>| {
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

    fn spend_all(state: &mut BudgetState, now: u64) -> u32 {
        let mut spent = 0;
        while spent < 10_000 && state.spend(Duration::from_secs(now)) {
            spent += 1;
        }
        spent
    }

    #[test]
    fn the_budget_grows_with_traffic_and_is_filled_again() {
        let mut state = BudgetState::new(RetryBudget::new());
        assert_eq!(spend_all(&mut state, 0), 100);
        for _ in 0..1_000 {
            state.call_began(Duration::from_secs(1));
            state.call_ended();
        }
        assert_eq!(spend_all(&mut state, 1), 200);
        assert_eq!(spend_all(&mut state, 9), 0, "the last ten seconds count");
        assert_eq!(
            spend_all(&mut state, 10),
            100,
            "the first five do not any more"
        );
        let mut state = BudgetState::new(RetryBudget::new());
        (0..1_000).for_each(|_| state.call_began(Duration::from_secs(11)));
        (0..1_000).for_each(|_| state.call_ended());
        assert_eq!(spend_all(&mut state, 16), 300);
        assert_eq!(spend_all(&mut state, 30), 100);
    }

    #[test]
    fn each_call_in_flight_may_be_sent_again_three_times() {
        let mut state = BudgetState::new(RetryBudget::new().ratio(0.0).min_per_second(0));
        assert_eq!(spend_all(&mut state, 0), 0);
        (0..256).for_each(|_| state.call_began(Duration::ZERO));
        assert_eq!(spend_all(&mut state, 0), 3 * 256);
    }

    #[test]
    fn an_unlimited_budget_allows_every_retry() {
        let mut state = BudgetState::new(RetryBudget::unlimited());
        assert_eq!(spend_all(&mut state, 0), 10_000);
        state.call_began(Duration::ZERO);
        assert_eq!(spend_all(&mut state, 0), 10_000);
    }

    #[test]
    fn an_invalid_ratio_is_refused() {
        for ratio in [-0.1, f64::NAN, 1_000.1] {
            assert!(
                RetryBudget::new().ratio(ratio).problem().is_some(),
                "{ratio}"
            );
        }
        assert_eq!(RetryBudget::unlimited().problem(), None);
    }
}
