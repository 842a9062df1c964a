//! Records what a call does: statistics, events and the fields of its span. Decides nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};

use crate::deprecation::Deprecation;
use crate::error::{CallStats, Error};
use crate::events::{Attempt, Event, Events, Finished, Received, Retrying, Throttled, Waiting};
use crate::rate_limit::{Blocked, Limiter, Wait};
use crate::request::Request;
use crate::retry::may_have_acted;

/// The observer of one call.
pub(super) struct Observer<'c> {
    events: &'c Events,
    request: &'c Request,
    stats: CallStats,
    /// Whether the service may have acted on the request, in any attempt, in case the call does not
    /// run to its end.
    may_have_acted: &'c AtomicBool,
}

impl<'c> Observer<'c> {
    pub(super) fn new(
        events: &'c Events,
        request: &'c Request,
        may_have_acted: &'c AtomicBool,
    ) -> Self {
        let stats = CallStats {
            idempotent: request.idempotent,
            ..CallStats::default()
        };
        Self {
            events,
            request,
            stats,
            may_have_acted,
        }
    }

    pub(super) fn stats(&self) -> CallStats {
        self.stats
    }

    /// Adds the operation and statistics of the call to an error.
    pub(super) fn complete(&self, error: Error) -> Error {
        error
            .with_operation(self.request.operation.clone())
            .with_stats(self.stats)
    }

    /// Records that the call begins to wait for rate limits.
    pub(super) fn waiting(&self, wait: Wait) {
        let Wait { reason, blocked } = wait;
        self.events.notify(|| {
            Event::Waiting(Waiting {
                operation: &self.request.operation,
                reason,
                blocked,
                until: blocked.map(|blocked| blocked.until),
            })
        });
    }

    /// Records how long the call waited for a permit.
    pub(super) fn waited(&mut self, duration: Duration) {
        self.stats.waited += duration;
    }

    /// Reports whether the store of shared limits failed, or works again.
    pub(super) fn check_store(&self, limiter: &Limiter) {
        self.events.notify_store(limiter);
    }

    /// Returns the headers for events, if anything observes them.
    pub(super) fn shown(&self, headers: &HeaderMap) -> Option<HeaderMap> {
        self.events.are_observed().then(|| headers.clone())
    }

    /// Records that an attempt is about to be sent.
    pub(super) fn sending(&mut self, headers: Option<&HeaderMap>) {
        self.stats.attempts += 1;
        self.events.notify(|| Event::Sending(self.attempt(headers)));
    }

    /// Records the end of an attempt. Completes its error.
    pub(super) fn finished(
        &mut self,
        headers: Option<&HeaderMap>,
        elapsed: Duration,
        result: Result<Response<Bytes>, Error>,
        shown_body: impl FnOnce(&Response<Bytes>) -> Bytes,
    ) -> Result<Response<Bytes>, Error> {
        self.stats.may_have_acted |= match &result {
            Ok(response) => may_have_acted(response.status()),
            Err(error) => error.was_sent(),
        };
        self.may_have_acted
            .store(self.stats.may_have_acted, Ordering::Release);
        let result = result.map_err(|error| self.complete(error));
        if self.events.are_observed() {
            let body = result.as_ref().map(shown_body).unwrap_or_default();
            let outcome = match &result {
                Ok(response) => Ok(Received::new(response, &body)),
                Err(error) => Err(error),
            };
            self.events.notify(|| {
                Event::Finished(Finished {
                    request: self.attempt(headers),
                    elapsed,
                    outcome,
                })
            });
        }
        result
    }

    /// Records a 429.
    pub(super) fn throttled(&self, blocked: Blocked) {
        self.events.notify(|| {
            Event::Throttled(Throttled {
                operation: &self.request.operation,
                attempt: self.stats.attempts,
                blocked,
            })
        });
    }

    /// Records that the call is about to wait before another attempt.
    pub(super) fn retrying(&mut self, error: &Error, delay: Duration) {
        self.stats.waited += delay;
        self.events.notify(|| {
            Event::Retrying(Retrying {
                operation: &self.request.operation,
                attempt: self.stats.attempts,
                error,
                delay,
            })
        });
    }

    /// Records the end of the call: its deprecation, and the fields of its span.
    pub(super) fn ended(&self, result: Result<&Response<Bytes>, &Error>) -> Option<Deprecation> {
        self.record_span(result);
        let headers = match result {
            Ok(response) => response.headers(),
            // A 404 may also have the headers.
            Err(error) if error.is_not_found() => error.headers()?,
            Err(_) => return None,
        };
        let deprecation = Deprecation::of(headers, self.request.removal)?;
        self.events
            .notify_deprecated(&self.request.operation, &deprecation);
        Some(deprecation)
    }

    fn record_span(&self, result: Result<&Response<Bytes>, &Error>) {
        let span = tracing::Span::current();
        if span.is_disabled() {
            return;
        }
        let status = match result {
            Ok(response) => Some(response.status()),
            Err(error) => error.status(),
        };
        let attempts = self.stats.attempts;
        let wait = u64::try_from(self.stats.waited.as_millis()).unwrap_or(u64::MAX);
        span.record(
            "http.response.status_code",
            status.map(|status| status.as_u16()),
        );
        span.record("http.request.resend_count", attempts.saturating_sub(1));
        span.record("petstore.attempts", attempts);
        span.record("petstore.wait_ms", wait);
    }

    /// Describes the current attempt.
    fn attempt<'a>(&'a self, headers: Option<&'a HeaderMap>) -> Attempt<'a> {
        Attempt {
            operation: &self.request.operation,
            attempt: self.stats.attempts,
            method: &self.request.method,
            url: &self.request.url,
            headers: headers.unwrap_or(&self.request.headers),
            body: &self.request.body,
        }
    }
}
