//! Reports what a call does: to its record, as events and in its span. Decides nothing.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Context;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response};
use tokio::time::Instant;

use super::record::CallRecord;
use crate::clock;
use crate::deprecation::Deprecation;
use crate::error::{CallStats, Error};
use crate::events::{AttemptRequest, Event, EventKind, Events};
use crate::logging::TARGET;
use crate::rate_limit::{Blocked, Limiter, Wait};
use crate::request::Request;
use crate::retry::may_have_acted;

/// The observer of one call.
pub(super) struct Observer<'c> {
    events: &'c Events,
    request: &'c Request,
    record: &'c CallRecord,
    /// The number of the current attempt, and when it began.
    attempt: u32,
    attempt_began: Instant,
}

impl<'c> Observer<'c> {
    pub(super) fn new(events: &'c Events, request: &'c Request, record: &'c CallRecord) -> Self {
        Self {
            events,
            request,
            record,
            attempt: 0,
            attempt_began: record.began(),
        }
    }

    /// Adds the operation and statistics of the call to an error.
    pub(super) fn complete(&self, error: Error) -> Error {
        self.record.complete(error)
    }

    /// Records that the call begins to wait for rate limits.
    pub(super) fn waiting(&self, wait: Wait) {
        let Wait { reason, blocked } = wait;
        self.notify(|| EventKind::Waiting { reason, blocked });
    }

    /// Records how long the call waited for a permit, or before another attempt.
    pub(super) fn waited(&self, duration: Duration) {
        self.record.waited(duration);
    }

    /// Awaits a permit. As soon as the store of shared limits fails or works again, reports that: the
    /// call may wait for long because of it.
    pub(super) async fn watch_store<T>(
        &self,
        limiter: &Limiter,
        acquiring: impl Future<Output = T>,
    ) -> T {
        let mut acquiring = pin!(acquiring);
        let look = |context: &mut Context<'_>| {
            let polled = acquiring.as_mut().poll(context);
            self.events.notify_store(limiter);
            polled
        };
        poll_fn(look).await
    }

    /// Begins an attempt.
    pub(super) fn begin_attempt(&mut self, now: Instant) {
        self.attempt_began = now;
        self.attempt = self.record.begin_attempt();
    }

    /// Returns the number of the current attempt.
    pub(super) fn attempt(&self) -> u32 {
        self.attempt
    }

    pub(super) fn attempt_began(&self) -> Instant {
        self.attempt_began
    }

    /// Lets the program's hooks change the headers.
    pub(super) fn prepare(&self, headers: &mut HeaderMap) {
        let call_id = self.record.id();
        let mut request = AttemptRequest::new(self.request, call_id, self.attempt, headers);
        self.events.prepare(&mut request);
    }

    /// Records that the attempt is about to be sent.
    pub(super) fn sending(&self, headers: &HeaderMap) {
        self.notify(|| EventKind::Sending {
            attempt: self.attempt,
            method: &self.request.method,
            url: &self.request.url,
            headers,
            body: &self.request.body,
        });
    }

    /// Records the end of an attempt. Completes its error.
    pub(super) fn finished(
        &self,
        result: Result<Response<Bytes>, Error>,
        shown_body: impl FnOnce(&Response<Bytes>) -> Bytes,
    ) -> Result<Response<Bytes>, Error> {
        self.record.end_attempt(match &result {
            Ok(response) => may_have_acted(response.status()),
            Err(error) => error.was_sent(),
        });
        let result = result.map_err(|error| self.complete(error));
        if self.events.are_observed() {
            let body = result.as_ref().map(shown_body).unwrap_or_default();
            let (attempt, method, url) = (self.attempt, &self.request.method, &self.request.url);
            let elapsed = clock::now().saturating_duration_since(self.attempt_began);
            self.notify(|| match &result {
                Ok(response) => EventKind::Answered {
                    attempt,
                    method,
                    url,
                    status: response.status(),
                    headers: response.headers(),
                    body: &body,
                    elapsed,
                },
                Err(error) => EventKind::Failed {
                    attempt,
                    method,
                    url,
                    error,
                    elapsed,
                },
            });
        }
        result
    }

    /// Records a 429. `is_new` says whether its block was not logged yet.
    pub(super) fn throttled(&self, blocked: Blocked, is_new: bool) {
        let attempt = self.attempt;
        let event = self.event(EventKind::Throttled { attempt, blocked });
        self.events.notify_throttled(&event, is_new);
    }

    /// Logs that no retry is left, unless the failed attempt was the only one.
    pub(super) fn exhausted(&self, error: &Error) {
        let (operation, attempts) = (&*self.request.operation, self.attempt);
        if attempts > 1 {
            // Subscribers show the causes of an error only if the field has this type.
            let error: &(dyn std::error::Error + 'static) = error;
            tracing::warn!(target: TARGET, operation, attempts, error, "no retry is left");
        }
    }

    /// Records that the call is about to wait before another attempt.
    pub(super) fn retrying(&self, error: &Error, delay: Duration) {
        self.notify(|| EventKind::Retrying {
            attempt: self.attempt,
            error,
            delay,
        });
    }

    /// Records the end of the call: its deprecation, and the fields of its span.
    pub(super) fn ended(&self, result: Result<&Response<Bytes>, &Error>) -> Option<Deprecation> {
        self.record_span(result);
        let headers = match result {
            Ok(response) => response.headers(),
            // A 404 may also have the headers.
            Err(error) if error.is_not_found() => error.response()?.headers(),
            Err(_) => return None,
        };
        let deprecation = Deprecation::of(headers, self.request.removal)?;
        self.events
            .notify_deprecated(&self.request.operation, self.record.id(), &deprecation);
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
        let CallStats {
            attempts, waited, ..
        } = self.record.stats();
        let wait = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        span.record(
            "http.response.status_code",
            status.map(|status| status.as_u16()),
        );
        span.record("http.request.resend_count", attempts.saturating_sub(1));
        span.record("petstore.attempts", attempts);
        span.record("petstore.wait_ms", wait);
    }

    fn notify<'e>(&'e self, kind: impl FnOnce() -> EventKind<'e>) {
        self.events.notify(|| self.event(kind()));
    }

    fn event<'e>(&'e self, kind: EventKind<'e>) -> Event<'e> {
        Event {
            operation: Some(&self.request.operation),
            call_id: Some(self.record.id()),
            kind,
        }
    }
}
