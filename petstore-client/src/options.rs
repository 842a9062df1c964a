//! The limits that a call obeys: a client's own, and what one call sets differently.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::after;
use crate::gate::Lane;
use crate::quota::Policy;

/// How long after its time limit a request is surely over.
const SPARE: Duration = Duration::from_secs(2);

/// What one call does differently from its client. Unset values stay the client's.
///
/// ```
/// use std::time::Duration;
/// use petstore_client::CallOptions;
///
/// let hurried = CallOptions::new()
///     .timeout(Duration::from_secs(2))
///     .max_wait(Duration::ZERO)
///     .max_attempts(1);
/// # let _ = hurried;
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[must_use]
pub struct CallOptions {
    timeout: Option<Duration>,
    attempt_timeout: Option<Duration>,
    max_wait: Option<Duration>,
    max_attempts: Option<u32>,
    max_response_bytes: Option<usize>,
    background: Option<bool>,
}

impl CallOptions {
    /// Creates options that change nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time limit for the whole call, its waits and retries included.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets the time limit for each attempt, from the first byte sent to the last one read.
    pub fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = Some(limit);
        self
    }

    /// Sets how long the call may be held back by rate limits, in all. Where the service asks for
    /// more, the call fails at once with the instant. Zero never waits.
    pub fn max_wait(mut self, limit: Duration) -> Self {
        self.max_wait = Some(limit);
        self
    }

    /// Sets how many requests the call may send, at least 1. (A 401 that a key provider answers
    /// with another key is not counted against it.)
    pub fn max_attempts(mut self, limit: u32) -> Self {
        self.max_attempts = Some(limit.max(1));
        self
    }

    /// Lets calls that are not in the background pass this one, where both wait for the rate
    /// limits.
    pub fn background(mut self, background: bool) -> Self {
        self.background = Some(background);
        self
    }

    /// Sets how many bytes of body a successful response may have.
    pub fn max_response_bytes(mut self, limit: usize) -> Self {
        self.max_response_bytes = Some(limit);
        self
    }
}

/// The limits in force.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) max_wait: Duration,
    pub(crate) max_attempts: u32,
    pub(crate) max_response_bytes: usize,
    pub(crate) lane: Lane,
    pub(crate) policy: Policy,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            attempt_timeout: Duration::from_secs(30),
            max_wait: Duration::from_secs(120),
            max_attempts: 4,
            max_response_bytes: 10 * 1024 * 1024,
            lane: Lane::Interactive,
            policy: Policy::default(),
        }
    }
}

impl Limits {
    pub(crate) fn with(self, options: &CallOptions) -> Self {
        let attempt_timeout = options.attempt_timeout.unwrap_or(self.attempt_timeout);
        Self {
            timeout: options.timeout.unwrap_or(self.timeout),
            attempt_timeout,
            max_wait: options.max_wait.unwrap_or(self.max_wait),
            max_attempts: options.max_attempts.unwrap_or(self.max_attempts),
            max_response_bytes: options.max_response_bytes.unwrap_or(self.max_response_bytes),
            lane: match options.background {
                Some(true) => Lane::Background,
                Some(false) => Lane::Interactive,
                None => self.lane,
            },
            policy: Policy { lease: attempt_timeout.saturating_add(SPARE), ..self.policy },
        }
    }

    pub(crate) fn deadline(&self, start: Instant) -> Instant {
        after(start, self.timeout)
    }
}
