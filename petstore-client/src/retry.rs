//! When a failed attempt is followed by another: the decision and the budget, both pure.

use std::fmt;
use std::time::Duration;

use http::{Method, StatusCode};

pub use crate::backoff::Backoff;
use crate::error::{Error, Failure};

/// An attempt that failed, for a classifier
/// ([`ClientBuilder::retry_classifier`](crate::ClientBuilder::retry_classifier)).
#[derive(Debug)]
#[non_exhaustive]
pub struct FailedAttempt<'a> {
    /// Why it failed.
    pub error: &'a Error,
    /// The operation: `listPets`, or method and path.
    pub operation: &'a str,
    /// The method.
    pub method: &'a Method,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether sending the request twice does no more than sending it once.
    pub idempotent: bool,
    /// Whether the client would send it again, if attempts, time and budget allow it.
    pub would_retry: bool,
}

/// What a classifier says of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RetryAdvice {
    /// Do as without a classifier.
    #[default]
    Default,
    /// Send again where that is safe: the request is idempotent, or was not processed. Attempts,
    /// time and budget have to allow it, and a rate limit is obeyed.
    Retry,
    /// Send again even where that may do the thing twice.
    RetryUnsafe,
    /// Fail now.
    Stop,
}

pub(crate) type Classifier = Box<dyn Fn(&FailedAttempt<'_>) -> RetryAdvice + Send + Sync>;

/// What follows a failed attempt. The error is what the call returns where time, attempts or budget
/// do not allow another.
#[derive(Debug)]
pub(crate) enum RetryDecision {
    Fail(Error),
    /// Another key, if there is one.
    Reauthorize(Error),
    /// The limiter holds the call back for as long as needed.
    Acquire(Error),
    /// A pause, and what the service asks for besides (`Retry-After` of a 5xx).
    Backoff(Error),
}

/// How a client retries.
#[derive(Default)]
pub(crate) struct RetryPolicy {
    pub(crate) backoff: Backoff,
    pub(crate) classifier: Option<Classifier>,
}

impl RetryPolicy {
    /// Decides what follows an attempt. `idempotent` says that sending the request twice is the same
    /// as sending it once (RFC 9110, section 9.2.2).
    pub(crate) fn decide(
        &self,
        error: Error,
        (operation, method, idempotent): (&str, &Method, bool),
    ) -> RetryDecision {
        let decision = decide(error, idempotent);
        let Some(classifier) = &self.classifier else { return decision };
        let (error, would_retry) = match &decision {
            RetryDecision::Fail(error) => (error, false),
            RetryDecision::Reauthorize(error)
            | RetryDecision::Acquire(error)
            | RetryDecision::Backoff(error) => (error, true),
        };
        let attempt = error.attempts();
        let advice = classifier(&FailedAttempt {
            error,
            operation,
            method,
            attempt,
            idempotent,
            would_retry,
        });
        let safe = idempotent || !error.may_have_been_processed();
        match (advice, decision) {
            (RetryAdvice::Stop, decision) => RetryDecision::Fail(decision.into_error()),
            (RetryAdvice::Retry, RetryDecision::Fail(error)) if safe => {
                RetryDecision::Backoff(error)
            }
            (RetryAdvice::RetryUnsafe, RetryDecision::Fail(error)) => RetryDecision::Backoff(error),
            (_, decision) => decision,
        }
    }
}

impl RetryDecision {
    fn into_error(self) -> Error {
        match self {
            Self::Fail(error)
            | Self::Reauthorize(error)
            | Self::Acquire(error)
            | Self::Backoff(error) => error,
        }
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy").field("backoff", &self.backoff).finish_non_exhaustive()
    }
}

fn decide(error: Error, idempotent: bool) -> RetryDecision {
    let failure = error.failure();
    match failure {
        // It would fail again.
        Failure::InvalidRequest(_) | Failure::Tls { .. } | Failure::BodyTooLarge { .. } => {
            RetryDecision::Fail(error)
        }
        Failure::RateLimited { .. } => RetryDecision::Acquire(error),
        Failure::Response(response) if response.status == StatusCode::UNAUTHORIZED => {
            RetryDecision::Reauthorize(error)
        }
        Failure::Response(response) if !is_transient(response.status) => RetryDecision::Fail(error),
        _ if idempotent || failure.not_sent() => RetryDecision::Backoff(error),
        _ => RetryDecision::Fail(error),
    }
}

/// Returns whether the service may have acted on a request that it answered so. Only an error of
/// the client's is proof that it has not: a 303 may mean "done, look there".
pub(crate) fn may_have_acted(status: StatusCode) -> bool {
    !status.is_client_error() || status == StatusCode::REQUEST_TIMEOUT
}

fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 500 | 502 | 503 | 504)
}

/// Keeps retries a part of all traffic, so that a service that fails is not flooded.
///
/// Within ten seconds, so many retries are allowed: [`ratio`](Self::ratio) for each call, and
/// [`min_per_second`](Self::min_per_second) for each second; and always three for each call in
/// flight, so that all of them survive a server that restarts. A call that waits for a rate limit,
/// or sends again after a 429, takes nothing out of the budget.
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
    /// Creates the default: 0.2 retries for each call, and 10 a second.
    pub fn new() -> Self {
        Self { ratio: 0.2, min_per_second: 10 }
    }

    /// Sets the retries for each call; 0 to 1,000.
    pub fn ratio(mut self, retries: f64) -> Self {
        self.ratio = retries;
        self
    }

    /// Sets the retries a second that are always allowed.
    pub fn min_per_second(mut self, retries: u32) -> Self {
        self.min_per_second = retries;
        self
    }

    /// Allows every retry.
    pub fn unlimited() -> Self {
        Self { ratio: f64::INFINITY, min_per_second: u32::MAX }
    }

    /// Returns what is wrong with it, if anything is.
    pub(crate) fn problem(self) -> Option<String> {
        let valid = self.ratio == f64::INFINITY || (0.0..=1_000.0).contains(&self.ratio);
        (!valid).then(|| format!("its ratio is {}, and must be from 0 to 1,000", self.ratio))
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self::new()
    }
}

/// The length of the two periods that are counted, in seconds: retries are compared with the calls
/// of the last five to ten seconds.
const PERIOD: u64 = 5;

/// The retries that are always allowed for each call in flight.
const RETRIES_IN_FLIGHT: f64 = 3.0;

/// What has been spent of a budget.
#[derive(Debug)]
pub(crate) struct BudgetState {
    budget: RetryBudget,
    in_flight: u32,
    period: u64,
    /// Calls and retries, in this period and in the one before.
    calls: [u32; 2],
    retries: [u32; 2],
}

impl BudgetState {
    pub(crate) fn new(budget: RetryBudget) -> Self {
        Self { budget, in_flight: 0, period: 0, calls: [0; 2], retries: [0; 2] }
    }

    pub(crate) fn call_began(&mut self, now: Duration) {
        self.turn_to(now);
        self.in_flight += 1;
        self.calls[0] = self.calls[0].saturating_add(1);
    }

    pub(crate) fn call_ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Takes a retry out of the budget, if there is one left.
    pub(crate) fn spend(&mut self, now: Duration) -> bool {
        if self.budget.ratio.is_infinite() {
            return true;
        }
        self.turn_to(now);
        let spent: u32 = self.retries.iter().copied().fold(0, u32::saturating_add);
        let calls: u32 = self.calls.iter().copied().fold(0, u32::saturating_add);
        let periods = f64::from(u32::try_from(2 * PERIOD).unwrap_or(u32::MAX));
        let share = f64::from(calls) * self.budget.ratio;
        let allowed = share + f64::from(self.budget.min_per_second) * periods;
        let allowed = allowed.max(f64::from(self.in_flight) * RETRIES_IN_FLIGHT);
        let is_left = f64::from(spent) < allowed;
        if is_left {
            self.retries[0] = self.retries[0].saturating_add(1);
        }
        is_left
    }

    fn turn_to(&mut self, now: Duration) {
        let period = now.as_secs() / PERIOD;
        match period.saturating_sub(self.period) {
            0 => return,
            1 => {
                self.calls = [0, self.calls[0]];
                self.retries = [0, self.retries[0]];
            }
            _ => (self.calls, self.retries) = ([0; 2], [0; 2]),
        }
        self.period = period;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::error::ErrorResponse;

    fn answered(status: u16) -> Error {
        let mut response = http::Response::new(Bytes::new());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        Error::new(Failure::Response(ErrorResponse::new(response)))
    }

    fn timed_out(sent: bool) -> Error {
        let (limit, after) = (crate::error::TimeoutKind::Attempt, Duration::from_secs(1));
        Error::new(Failure::Timeout { limit, after, sent })
    }

    fn retries(error: Error, idempotent: bool) -> bool {
        matches!(decide(error, idempotent), RetryDecision::Backoff(_))
    }

    #[test]
    fn an_idempotent_request_is_repeated_after_a_transient_failure() {
        for status in [408, 500, 502, 503, 504] {
            assert!(retries(answered(status), true), "{status}");
        }
        for status in [302, 400, 401, 403, 404, 405, 410, 422, 501, 505] {
            assert!(!retries(answered(status), true), "{status}");
        }
        assert!(retries(timed_out(true), true));
    }

    #[test]
    fn another_request_is_repeated_only_where_the_first_cannot_have_been_processed() {
        for status in [408, 500, 502, 503, 504] {
            assert!(!retries(answered(status), false), "{status}");
        }
        assert!(!retries(timed_out(true), false));
        assert!(retries(timed_out(false), false));
    }

    #[test]
    fn only_a_4xx_proves_that_nothing_was_done() {
        for (status, expected) in
            [(201, true), (303, true), (400, false), (429, false), (408, true), (502, true)]
        {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(may_have_acted(status), expected, "{status}");
        }
    }

    #[test]
    fn a_classifier_retries_only_what_is_safe_unless_it_says_so() {
        let with = |advice, error: Error, idempotent| {
            let classifier: Classifier = Box::new(move |_: &FailedAttempt<'_>| advice);
            let policy = RetryPolicy { classifier: Some(classifier), ..RetryPolicy::default() };
            matches!(
                policy.decide(error, ("x", &Method::POST, idempotent)),
                RetryDecision::Backoff(_)
            )
        };
        let stats =
            |may_have_acted| crate::error::CallStats { may_have_acted, ..Default::default() };
        let lost = || timed_out(true).with_stats(stats(true));
        assert!(with(RetryAdvice::Retry, answered(404), false));
        assert!(!with(RetryAdvice::Retry, lost(), false));
        assert!(with(RetryAdvice::RetryUnsafe, lost(), false));
        assert!(with(RetryAdvice::Default, lost(), true));
        assert!(!with(RetryAdvice::Stop, lost(), true));
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
        assert_eq!(spend_all(&mut state, 20), 100);
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
    fn a_ratio_that_is_no_part_of_traffic_is_refused() {
        for ratio in [-0.1, f64::NAN, 1_000.1] {
            assert!(RetryBudget::new().ratio(ratio).problem().is_some(), "{ratio}");
        }
        assert_eq!(RetryBudget::unlimited().problem(), None);
    }
}
