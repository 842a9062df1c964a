//! The retry policy of a client.

use std::fmt;
use std::sync::Arc;

use super::{Classifier, FailedAttempt, RetryAdvice, RetryBudget};
use crate::backoff::Backoff;

/// When a client retries failed attempts, for [`ClientBuilder::retry`](crate::ClientBuilder::retry).
///
/// ```
/// use petstore_client::Client;
/// use petstore_client::retry::{RetryAdvice, RetryPolicy};
///
/// // This service answers 409 while it locks a pet.
/// let policy = RetryPolicy::new().attempts(6).classifier(|failed| {
///     match failed.error.status().map(|status| status.as_u16()) {
///         Some(409) => RetryAdvice::Retry,
///         _ => RetryAdvice::Default,
///     }
/// });
/// let client = Client::builder("https://petstore.example/v1").api_key("s3cret").retry(policy).build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct RetryPolicy {
    pub(super) attempts: u32,
    pub(super) backoff: Backoff,
    pub(super) budget: RetryBudget,
    pub(super) classifier: Option<Classifier>,
}

impl RetryPolicy {
    /// Creates the default: 4 attempts, with the default [`Backoff`] and [`RetryBudget`].
    pub fn new() -> Self {
        Self {
            attempts: 4,
            backoff: Backoff::new(),
            budget: RetryBudget::new(),
            classifier: None,
        }
    }

    /// Sets the maximum number of attempts of a call, at least 1; 1 means no retry. A 401 does not
    /// count if the call then uses another key.
    pub fn attempts(mut self, most: u32) -> Self {
        self.attempts = most;
        self
    }

    /// Sets the delays between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Limits the retries of all calls together.
    pub fn budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets a function that can override the decision to retry. [`RetryAdvice::Retry`] never repeats a
    /// request that may have been processed, unless it is idempotent.
    pub fn classifier(
        mut self,
        classify: impl Fn(&FailedAttempt<'_>) -> RetryAdvice + Send + Sync + 'static,
    ) -> Self {
        self.classifier = Some(Arc::new(classify));
        self
    }

    /// Returns the setting that is invalid, and why.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        if self.attempts == 0 {
            let problem = "it must be at least 1".to_owned();
            return Some(("number of attempts", problem));
        }
        let problem = self.budget.problem()?;
        Some(("retry budget", problem))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("attempts", &self.attempts)
            .field("backoff", &self.backoff)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
