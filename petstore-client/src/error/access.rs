//! What programs read from an error, and how it is shown.

use std::fmt;
use std::time::{Duration, SystemTime};

use http::StatusCode;

use super::Error;
use super::kind::{ErrorKind, TimeoutKind, is_transient};
use super::response::ErrorResponse;
use crate::clock;
use crate::rate_limit::view::{Blocked, QuotaWindow};
use crate::wire::headers;

/// When to retry after a wait for something without a known end.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Error {
    /// Returns whether the request of the last attempt may have reached the service.
    pub(crate) fn was_sent(&self) -> bool {
        self.0.sent
    }

    /// Returns the response that ended the call, if any: its headers and its body.
    #[must_use]
    pub fn response(&self) -> Option<&ErrorResponse> {
        self.0.response.as_ref()
    }

    /// Returns the status of the response, if any.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.response().map(|response| response.status)
    }

    /// Returns what is wrong, without the operation, the attempts and what to do, for programs that
    /// say those in their own words. It is safe to print on a terminal.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.0.message
    }

    /// Returns whether sending the request again may do the same thing twice.
    fn is_unsafe_to_repeat(&self) -> bool {
        self.may_have_been_processed() && !self.0.stats.idempotent
    }

    /// Returns the service's `code` as sent. The set of codes is open.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.response()?.code.as_deref()
    }

    /// Returns the service's `message` as sent. It may contain control characters.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.response()?.message.as_deref()
    }

    /// Returns the quota that the response describes (specification, section 8).
    #[must_use]
    pub fn quota(&self) -> Option<QuotaWindow> {
        QuotaWindow::of(self.response()?.headers())
    }

    /// Returns the time of the response (`Date`), if any.
    #[must_use]
    pub fn date(&self) -> Option<SystemTime> {
        headers::date(self.response()?.headers())
    }

    /// Returns the block that ended the call, if any. A call that waited for other requests for as long as
    /// it may has none.
    #[must_use]
    pub fn blocked(&self) -> Option<&Blocked> {
        self.0.blocked.as_ref()
    }

    /// Returns when to retry, on the service's clock: at the end of the block, or after the
    /// `Retry-After` of a 5xx, 408 or 425.
    #[must_use]
    pub fn retry_at(&self) -> Option<SystemTime> {
        match self.blocked() {
            Some(blocked) => Some(blocked.until),
            None => self
                .date()
                .unwrap_or_else(clock::wall)
                .checked_add(self.retry_after()?),
        }
    }

    /// Returns the time from the error to [`retry_at`](Self::retry_at). Unlike that, it does not
    /// depend on a correct local clock. Round it up if you send it on in a `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Some(blocked) = self.blocked() {
            return Some(blocked.remaining);
        }
        if self.0.has_waited_in_vain {
            return Some(ASK_AGAIN_AFTER);
        }
        let response = self.response()?;
        if !is_transient(response.status) {
            return None;
        }
        let service_now = self.date().unwrap_or_else(clock::wall);
        headers::retry_after_failure(&response.headers, service_now)
    }

    /// Returns the operation: the specification's name (`listPets`), or the method and path.
    #[must_use]
    pub fn operation(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }

    /// Returns the number of attempts; 0 if the call failed before the first.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.stats.attempts
    }

    /// Returns how long the call waited: between attempts, for rate limits, and for other calls
    /// with the key ([`WaitReason`](crate::rate_limit::WaitReason)).
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.0.stats.waited
    }

    /// Returns whether the service may have processed the request: the response was lost, or it was
    /// a 5xx, for example. A 4xx and a redirect say that it was not. If `false`, the request is safe to send again.
    #[must_use]
    pub fn may_have_been_processed(&self) -> bool {
        self.0.stats.may_have_acted
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the time limit that ended the call, if any.
    #[must_use]
    pub fn timeout_kind(&self) -> Option<TimeoutKind> {
        self.0.timeout
    }

    /// Returns whether the key is missing or invalid (401), or the key provider failed.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Unauthorized | ErrorKind::Credentials
        )
    }

    /// Returns whether the resource or the path does not exist (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Returns whether a rate limit or a ban ended the call: a 429, or a wait beyond `max_wait`.
    /// [`retry_at`](Self::retry_at) says when to retry.
    #[must_use]
    pub fn is_rate_limited(&self) -> bool {
        self.kind() == ErrorKind::RateLimited
    }

    /// Returns whether a time limit expired, including the one for connecting.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Returns whether connecting failed: [`ErrorKind::Connect`], [`ErrorKind::Tls`], or a time-out
    /// while connecting.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        matches!(self.kind(), ErrorKind::Connect | ErrorKind::Tls)
            || self.timeout_kind() == Some(TimeoutKind::Connect)
    }

    /// Returns whether the same call may succeed later: after a failed connection, a time-out, an
    /// interruption, a 408, 425 or 5xx, a rate limit, or a failed store.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self.kind() {
            ErrorKind::Connect
            | ErrorKind::Timeout
            | ErrorKind::Interrupted
            | ErrorKind::RateLimited
            | ErrorKind::Store
            | ErrorKind::Server => true,
            _ => self.status().is_some_and(is_transient),
        }
    }
}

/// Includes the complete message, because a program whose `main` returns the error prints this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Error");
        fields
            .field("kind", &self.0.kind)
            .field("message", &self.to_string());
        fields
            .field("attempts", &self.attempts())
            .field("source", &self.0.source)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.0.operation {
            write!(f, "{operation} failed: ")?;
        }
        f.write_str(self.problem())?;
        if self.is_unsafe_to_repeat() {
            f.write_str("; the request may have been processed: check before you retry")?;
        } else if let Some(advice) = self.0.advice {
            write!(f, "; {advice}")?;
        }
        match (self.attempts(), self.waited().as_secs()) {
            (0 | 1, 0) => Ok(()),
            (0 | 1, waited) => write!(f, " (after {waited} s of waiting)"),
            (attempts, 0) => write!(f, " (after {attempts} attempts)"),
            (attempts, waited) => {
                write!(f, " (after {attempts} attempts and {waited} s of waiting)")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
