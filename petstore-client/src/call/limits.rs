//! The limits of one call.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::clock;
use crate::error::{Error, TimeoutKind};
use crate::options::{
    DEFAULT_ATTEMPT_TIMEOUT, DEFAULT_MAX_RESPONSE_BYTES, DEFAULT_MAX_WAIT, DEFAULT_READ_TIMEOUT,
    DEFAULT_TIMEOUT, RequestOptions,
};
use crate::rate_limit::Priority;
use crate::transport::AttemptLimits;

/// How long after its time limit a request has certainly ended.
const LEASE_SLACK: Duration = Duration::from_secs(2);

/// The limits of one call: its options, and the defaults for the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimits {
    deadline: Instant,
    timeout: Duration,
    attempt_timeout: Duration,
    read_timeout: Duration,
    max_wait: Duration,
    max_attempts: u32,
    max_response_bytes: usize,
    priority: Priority,
}

impl CallLimits {
    /// Returns the limits of a call that begins now. `max_attempts` is the client's default.
    pub(crate) fn new(options: &RequestOptions, max_attempts: u32, now: Instant) -> Self {
        let timeout = options.timeout.unwrap_or(DEFAULT_TIMEOUT);
        Self {
            deadline: clock::after(now, timeout),
            timeout,
            attempt_timeout: options.attempt_timeout.unwrap_or(DEFAULT_ATTEMPT_TIMEOUT),
            read_timeout: options.read_timeout.unwrap_or(DEFAULT_READ_TIMEOUT),
            max_wait: options.max_wait.unwrap_or(DEFAULT_MAX_WAIT),
            max_attempts: options.max_attempts.unwrap_or(max_attempts),
            max_response_bytes: options
                .max_response_bytes
                .unwrap_or(DEFAULT_MAX_RESPONSE_BYTES),
            priority: options.priority.unwrap_or_default(),
        }
    }

    /// Returns when the whole call must end.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn max_wait(&self) -> Duration {
        self.max_wait
    }

    pub(super) fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    pub(super) fn priority(&self) -> Priority {
        self.priority
    }

    /// Returns how long the limiter expects a request to be in flight at most.
    pub(super) fn lease(&self) -> Duration {
        self.attempt_timeout.saturating_add(LEASE_SLACK)
    }

    /// Returns the limits of an attempt that starts at `now`.
    pub(super) fn attempt(&self, now: Instant) -> AttemptLimits {
        let end = clock::after(now, self.attempt_timeout);
        let (deadline, limit) = if end < self.deadline {
            (end, (TimeoutKind::Attempt, self.attempt_timeout))
        } else {
            (self.deadline, (TimeoutKind::Call, self.timeout))
        };
        AttemptLimits {
            deadline,
            limit,
            read_timeout: self.read_timeout,
            max_bytes: self.max_response_bytes,
        }
    }

    /// Awaits `work`, until the call's deadline.
    pub(super) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match timeout_at(self.deadline, pin!(work)).await {
            Ok(result) => result,
            Err(_) => Err(self.timed_out(false)),
        }
    }

    /// Returns the error of a call that has reached its deadline. `sent` says whether a request in
    /// flight may have reached the service.
    pub(crate) fn timed_out(&self, sent: bool) -> Error {
        Error::timed_out(TimeoutKind::Call, self.timeout, sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_attempt_ends_at_the_first_limit_and_before_its_lease() {
        let now = clock::now();
        let limits = |timeout| {
            let options = RequestOptions::new()
                .timeout(Duration::from_secs(timeout))
                .attempt_timeout(Duration::from_secs(7));
            CallLimits::new(&options, 4, now)
        };
        for (timeout, kind, seconds) in [
            (6, TimeoutKind::Call, 6),
            (7, TimeoutKind::Call, 7),
            (8, TimeoutKind::Attempt, 7),
        ] {
            let limits = limits(timeout);
            let attempt = limits.attempt(now);
            let length = Duration::from_secs(seconds);
            assert_eq!(attempt.limit, (kind, length));
            assert_eq!(attempt.deadline, now + length);
            assert_eq!(limits.lease(), Duration::from_secs(9));
        }
    }
}
