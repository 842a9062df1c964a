//! The limits of calls: a client's defaults and a call's overrides.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use crate::error::Error;
use crate::rate_limit::Priority;
use crate::wire::extra_headers::{add_missing, additional_header};

pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
pub(crate) const DEFAULT_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
pub(crate) const DEFAULT_READ_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(120);
pub(crate) const DEFAULT_MAX_RESPONSE_BYTES: usize = 10 * 1024 * 1024;

/// Generates the setters that clients and calls share. The others are those of [`RequestOptions`].
macro_rules! option_setters {
    () => {
        /// Applies the settings of `options`, and keeps all others.
        pub fn options(mut self, options: &$crate::options::RequestOptions) -> Self {
            self.options_mut().merge(options);
            self
        }

        /// Sets the time limit for the whole call, including waits and retries (default: 300 s).
        pub fn timeout(mut self, limit: std::time::Duration) -> Self {
            self.options_mut().timeout = Some(limit);
            self
        }

        /// Sets how long rate limits may delay the call in total (default: 120 s): a used-up quota, a
        /// ban, requests before it, or the `Retry-After` of a 5xx. If the end of the wait is known and later, the call fails
        /// immediately, and its error says when to retry. With zero, the call is sent now or not at
        /// all. The exchange with a store of shared limits does not count.
        pub fn max_wait(mut self, limit: std::time::Duration) -> Self {
            self.options_mut().max_wait = Some(limit);
            self
        }
    };
}

pub(crate) use option_setters;

/// Limits and headers of calls. Unset values keep the client's settings.
///
/// A client takes them with [`options`](crate::ClientBuilder::options), and so does each call.
///
/// ```
/// use std::time::Duration;
/// use petstore_client::RequestOptions;
///
/// let hurried = RequestOptions::new()
///     .timeout(Duration::from_secs(2))
///     .max_wait(Duration::ZERO)
///     .max_attempts(1);
/// # let _ = hurried;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct RequestOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) read_timeout: Option<Duration>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) max_response_bytes: Option<usize>,
    pub(crate) priority: Option<Priority>,
    headers: Option<Arc<ExtraHeaders>>,
}

/// The headers that options add, and the first problem with one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ExtraHeaders {
    headers: HeaderMap,
    problem: Option<String>,
}

impl RequestOptions {
    /// Creates options that change nothing.
    pub fn new() -> Self {
        Self::default()
    }

    option_setters!();

    fn options_mut(&mut self) -> &mut Self {
        self
    }

    /// Sets the time limit for one attempt, from the first byte sent to the last byte read
    /// (default: 30 s).
    pub fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = Some(limit);
        self
    }

    /// Sets the time limit between two reads of a response's body (default: 10 s). It applies
    /// only to the built-in transport, because other transports return complete responses.
    pub fn read_timeout(mut self, limit: Duration) -> Self {
        self.read_timeout = Some(limit);
        self
    }

    /// Sets the maximum number of attempts, at least 1. The default is that of the client's
    /// [`RetryPolicy`](crate::retry::RetryPolicy). A 401 does not count if the call then uses another
    /// key.
    pub fn max_attempts(mut self, limit: u32) -> Self {
        self.max_attempts = Some(limit);
        self
    }

    /// Sets the maximum size of a successful response's body, in bytes (default: 10 MiB).
    pub fn max_response_bytes(mut self, limit: usize) -> Self {
        self.max_response_bytes = Some(limit);
        self
    }

    /// Sets which of two waiting calls goes first (default: [`Priority::Normal`]).
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Adds a header to all attempts of the calls, unless a call sets it itself. The client sets
    /// `Authorization`, `Host`, `Connection` and the headers for the body's length, and the calls
    /// fail if they are given here.
    ///
    /// ```
    /// use petstore_client::RequestOptions;
    ///
    /// let import = RequestOptions::new().header("X-Batch", "2031-05").max_attempts(8);
    /// # let _ = import;
    /// ```
    pub fn header<V: TryInto<HeaderValue>>(mut self, name: impl AsRef<str>, value: V) -> Self {
        let extra = Arc::make_mut(self.headers.get_or_insert_default());
        match additional_header(name.as_ref(), value) {
            Ok((name, value)) => {
                extra.headers.append(name, value);
            }
            Err(problem) => extra.problem = extra.problem.take().or(Some(problem)),
        }
        self
    }

    /// Returns why a header is invalid, if one is.
    pub(crate) fn header_problem(&self) -> Option<&str> {
        self.headers.as_ref()?.problem.as_deref()
    }

    /// Adds the headers that are missing. Fails if an invalid one was given.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) -> Result<(), Error> {
        if let Some(problem) = self.header_problem() {
            return Err(Error::invalid(problem));
        }
        if let Some(extra) = &self.headers {
            add_missing(headers, &extra.headers);
        }
        Ok(())
    }

    /// Overwrites these options with those that `other` sets.
    pub(crate) fn merge(&mut self, other: &Self) {
        *self = Self {
            timeout: other.timeout.or(self.timeout),
            attempt_timeout: other.attempt_timeout.or(self.attempt_timeout),
            read_timeout: other.read_timeout.or(self.read_timeout),
            max_wait: other.max_wait.or(self.max_wait),
            max_attempts: other.max_attempts.or(self.max_attempts),
            max_response_bytes: other.max_response_bytes.or(self.max_response_bytes),
            priority: other.priority.or(self.priority),
            headers: merged(self.headers.take(), other.headers.as_ref()),
        };
    }
}

/// Returns both sets of headers. Those of `other` replace earlier ones with the same name.
fn merged(
    own: Option<Arc<ExtraHeaders>>,
    other: Option<&Arc<ExtraHeaders>>,
) -> Option<Arc<ExtraHeaders>> {
    let (Some(own), Some(other)) = (&own, other) else {
        return own.or(other.cloned());
    };
    let mut merged = (**other).clone();
    add_missing(&mut merged.headers, &own.headers);
    merged.problem = merged.problem.or_else(|| own.problem.clone());
    Some(Arc::new(merged))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_settings_that_the_other_does_not_have() {
        let mut options = RequestOptions::new()
            .max_attempts(2)
            .timeout(Duration::from_secs(9));
        options.merge(
            &RequestOptions::new()
                .max_attempts(3)
                .priority(Priority::Low),
        );
        let expected = RequestOptions::new()
            .max_attempts(3)
            .timeout(Duration::from_secs(9))
            .priority(Priority::Low);
        assert_eq!(options, expected);
    }
}
