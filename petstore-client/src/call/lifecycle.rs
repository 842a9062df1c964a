//! The life of one call: authorize, acquire, send, observe, decide, wait, and round again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use tokio::time::{Instant, sleep, timeout_at};

use super::core::{Core, Request};
use crate::auth::Credential;
use crate::backoff::Schedule;
use crate::clock;
use crate::error::{CallStats, Error, ErrorResponse, Failure, TimeoutKind};
use crate::events::{Attempt, Event, Finished, Received, Retrying, Throttled, Waiting};
use crate::options::CallLimits;
use crate::rate_limit::{Acquire, BlockReason, Blocked, Limiter, Permit, Wait};
use crate::redact::Redactor;
use crate::response::{Response, ResponseMeta};
use crate::retry::{RetryDecision, may_have_acted};
use crate::transport::{AttemptLimits, read};

/// After a longer wait, a key provider is asked again: the key may have rotated.
const REAUTHORIZE_AFTER: Duration = Duration::from_secs(5);
/// How long after its time limit a request is certainly over.
const LEASE_SLACK: Duration = Duration::from_secs(2);

pub(super) async fn run(
    core: Arc<Core>,
    request: Request,
    limits: CallLimits,
    deadline: Instant,
) -> Result<Response<Bytes>, Error> {
    let mut call = CallState::new(&core, &request, limits, deadline);
    let result = call.attempts().await;
    let stats = call.stats;
    drop(call);
    record(&result, &stats);
    match result {
        Ok((response, redactor)) => {
            let (head, body) = response.into_parts();
            let deprecation = core.deprecation(&request, &head.headers);
            let link = head.headers.get_all(header::LINK).iter();
            let repeats_key = redactor.finds(&body)
                || link.into_iter().any(|link| redactor.finds(link.as_bytes()));
            let meta = ResponseMeta {
                operation: request.operation,
                url: request.http.url,
                page_size: request.page_size,
                status: head.status,
                headers: head.headers,
                deprecation: deprecation.map(Box::new),
                stats,
                redactor: repeats_key.then_some(redactor),
            };
            Ok(Response::new(body, meta))
        }
        Err(error) => {
            // A 404 still carries deprecation headers.
            if let Some(headers) = error.headers().filter(|_| error.is_not_found()) {
                core.deprecation(&request, headers);
            }
            Err(error.with_operation(request.operation).with_stats(stats))
        }
    }
}

/// Completes the call's span.
fn record(result: &Result<(http::Response<Bytes>, Redactor), Error>, stats: &CallStats) {
    let span = tracing::Span::current();
    if span.is_disabled() {
        return;
    }
    let status = match result {
        Ok((response, _)) => Some(response.status()),
        Err(error) => {
            span.record("error.type", tracing::field::debug(error.kind()));
            error.status()
        }
    };
    span.record("http.response.status_code", status.map(|status| status.as_u16()));
    span.record("http.request.resend_count", stats.attempts.saturating_sub(1));
    span.record("petstore.attempts", stats.attempts);
    let wait = u64::try_from(stats.waited.as_millis()).unwrap_or(u64::MAX);
    span.record("petstore.wait_ms", wait);
}

/// One call in progress.
struct CallState<'c> {
    core: &'c Core,
    request: &'c Request,
    limits: CallLimits,
    deadline: Instant,
    stats: CallStats,
    schedule: Schedule,
    /// How much of `max_wait` has been used up.
    blocked_for: Duration,
    reauthorized: bool,
    forced: bool,
    /// Its place in line at the limiter, which retries keep.
    place: Option<u64>,
}

impl<'c> CallState<'c> {
    fn new(core: &'c Core, request: &'c Request, limits: CallLimits, deadline: Instant) -> Self {
        core.budget().call_began(core.age(clock::now()));
        Self {
            core,
            request,
            limits,
            deadline,
            stats: CallStats { idempotent: request.idempotent, ..CallStats::default() },
            schedule: core.retry.backoff.schedule(),
            blocked_for: Duration::ZERO,
            reauthorized: false,
            forced: request.forced,
            place: None,
        }
    }

    /// Sends the request as often as policy allows.
    async fn attempts(&mut self) -> Result<(http::Response<Bytes>, Redactor), Error> {
        let Request { operation, http, idempotent, .. } = self.request;
        let mut replacement = None;
        loop {
            let is_latest = replacement.is_some();
            let credential = match replacement.take() {
                Some(credential) => credential,
                None => self.authorize().await?,
            };
            let limiter = self.core.limiters.get(&credential.authorization);
            let (permit, waited) = self.acquire(&limiter).await?;
            if waited > REAUTHORIZE_AFTER && credential.may_rotate() && !is_latest {
                // The provider may take its time, which others need not wait for.
                permit.not_sent();
                replacement = Some(self.authorize().await?);
                continue;
            }
            let sent = clock::now();
            if sent >= self.deadline {
                permit.not_sent();
                return Err(self.timed_out());
            }
            let redactor = Redactor::new(&credential.authorization);
            let error = match self.attempt(&credential, &limiter, permit, (&redactor, sent)).await {
                Ok(response) => return Ok((response, redactor)),
                Err(error) => error.with_operation(operation.clone()).with_stats(self.stats),
            };
            match self.core.retry.decide(error, (operation, &http.method, *idempotent)) {
                RetryDecision::Fail(error) => return Err(error),
                RetryDecision::Acquire(error) => self.check_wait(error)?,
                RetryDecision::Backoff(error) => self.back_off(error).await?,
                RetryDecision::Reauthorize(error) => {
                    match self.reauthorize(&credential, sent).await? {
                        Some(credential) => replacement = Some(credential),
                        None => return Err(error),
                    }
                }
            }
        }
    }

    async fn authorize(&self) -> Result<Credential, Error> {
        let credential = timeout_at(self.deadline, self.core.credentials.get()).await;
        credential.unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// Returns another credential after a 401, once a call.
    async fn reauthorize(
        &mut self,
        rejected: &Credential,
        sent: Instant,
    ) -> Result<Option<Credential>, Error> {
        if std::mem::replace(&mut self.reauthorized, true) {
            return Ok(None);
        }
        let credential = self.core.credentials.replace(rejected, sent);
        let credential = timeout_at(self.deadline, credential).await;
        credential.unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// Waits for the right to send. Returns how long that took.
    async fn acquire<'l>(&mut self, limiter: &'l Limiter) -> Result<(Permit<'l>, Duration), Error> {
        let began = clock::now();
        let request = Acquire {
            place: self.place,
            priority: self.limits.priority,
            policy: self.core.policy,
            latest: self.latest_unblocked(began),
            forced: std::mem::take(&mut self.forced),
            lease: self.limits.attempt_timeout.saturating_add(LEASE_SLACK),
        };
        let (events, operation) = (&self.core.events, &self.request.operation);
        let mut was_blocked = false;
        let acquired = limiter.acquire(request, |Wait { reason, blocked }| {
            was_blocked |= blocked.is_some();
            let until = blocked.map(|blocked| blocked.until);
            events.notify(|| Event::Waiting(Waiting { operation, reason, blocked, until }));
        });
        // Behind other requests no end of the wait is known, but there is one.
        let acquired = timeout_at(self.deadline, acquired).await;
        self.core.report_store(limiter);
        let waited = match &acquired {
            Ok(Ok(permit)) if !permit.has_waited() => Duration::ZERO,
            _ => clock::now().saturating_duration_since(began),
        };
        self.stats.waited += waited;
        if was_blocked {
            self.blocked_for += waited;
        }
        match acquired {
            Ok(Ok(permit)) => {
                self.place = Some(permit.place());
                Ok((permit, waited))
            }
            Ok(Err(blocked)) => {
                let allowed = Some(self.allowed_wait(clock::now()));
                Err(Error::new(Failure::RateLimited { blocked, allowed, response: None }))
            }
            Err(_) => Err(self.timed_out()),
        }
    }

    /// Sends the request once. A response that is no success is an error.
    async fn attempt(
        &mut self,
        credential: &Credential,
        limiter: &Limiter,
        permit: Permit<'_>,
        (redactor, sent): (&Redactor, Instant),
    ) -> Result<http::Response<Bytes>, Error> {
        let (Core { events, .. }, Request { operation, http, .. }) = (self.core, self.request);
        let number = self.stats.attempts + 1;
        let headers = self.core.headers(&http.headers);
        let shown = events.are_heard().then(|| headers.clone());
        let request = Attempt {
            operation,
            attempt: number,
            method: &http.method,
            url: &http.url,
            headers: shown.as_ref().unwrap_or(&http.headers),
            body: &http.body,
        };
        events.notify(|| Event::Sending(request));
        let (exchanged, blocked) = self.exchange(headers, credential, permit, sent).await;
        let result = match exchanged {
            Ok(mut response) => {
                self.stats.attempts = number;
                self.stats.may_have_acted |= may_have_acted(response.status());
                if !response.status().is_success() {
                    redactor.remove(response.headers_mut());
                    response = response.map(|body| redactor.removed(body));
                }
                Ok(response)
            }
            Err(failure) => {
                // What could not be tried is not counted.
                let tried = !matches!(failure, Failure::InvalidRequest(_) | Failure::Tls { .. });
                self.stats.attempts += u32::from(tried);
                self.stats.may_have_acted |= !failure.not_sent();
                Err(self.error(failure))
            }
        };
        events.notify(|| {
            let elapsed = clock::now().saturating_duration_since(sent);
            let outcome = result.as_ref().map(Received::of);
            Event::Finished(Finished { request, elapsed, outcome })
        });
        let response = result?;
        if response.status().is_success() {
            return Ok(response);
        }
        let response = ErrorResponse::new(response);
        let Some(mut blocked) = blocked else {
            return Err(self.error(Failure::Response(response)));
        };
        if response.code.as_deref() == Some("key_banned") {
            blocked.reason = BlockReason::Ban;
            limiter.record_ban();
        }
        events.notify(|| Event::Throttled(Throttled { operation, attempt: number, blocked }));
        let response = Some(response);
        Err(self.error(Failure::RateLimited { blocked, allowed: None, response }))
    }

    /// Sends the request and reads the response. Returns the block that it asks for as well.
    async fn exchange(
        &self,
        mut headers: HeaderMap,
        credential: &Credential,
        permit: Permit<'_>,
        sent: Instant,
    ) -> (Result<http::Response<Bytes>, Failure>, Option<Blocked>) {
        headers.insert(header::AUTHORIZATION, credential.authorization.clone());
        let limits = self.attempt_limits(sent);
        let pending = match self.core.network.send(&self.request.http, headers, &limits).await {
            Ok(pending) => pending,
            Err(failure) => {
                if failure.not_sent() {
                    permit.not_sent();
                }
                return (Err(failure), None);
            }
        };
        // Before the body is read, which may take its time.
        let blocked = permit.observe(pending.status(), pending.headers());
        (read(pending, &limits).await, blocked)
    }

    /// Fails where no other attempt is allowed, or a 429 blocks for longer than the call may wait.
    fn check_wait(&self, error: Error) -> Result<(), Error> {
        if !self.may_try_again() {
            return Err(error);
        }
        let now = clock::now();
        match error.blocked().map(|blocked| blocked.remaining) {
            Some(wait) if clock::after(now, wait) > self.latest_unblocked(now) => {
                Err(error.with_allowed_wait(self.allowed_wait(now)))
            }
            _ => Ok(()),
        }
    }

    /// Pauses before another attempt, for longer where the service asks for that (`Retry-After` of a
    /// 5xx, for this call alone).
    async fn back_off(&mut self, error: Error) -> Result<(), Error> {
        let asked = error.retry_after().unwrap_or_default();
        let delay = self.schedule.next().saturating_add(asked);
        let now = clock::now();
        let end = clock::after(now, delay);
        let in_time = end < self.deadline && (asked.is_zero() || end <= self.latest_unblocked(now));
        if !(self.may_try_again() && in_time && self.core.budget().spend(self.core.age(now))) {
            return Err(error);
        }
        self.blocked_for += asked;
        self.stats.waited += delay;
        self.core.events.notify(|| {
            let (operation, attempt) = (&*self.request.operation, self.stats.attempts);
            Event::Retrying(Retrying { operation, attempt, error: &error, delay })
        });
        sleep(delay).await;
        Ok(())
    }

    fn may_try_again(&self) -> bool {
        // An attempt whose key was replaced is not counted.
        self.stats.attempts - u32::from(self.reauthorized) < self.limits.max_attempts
    }

    /// Returns the latest instant to which rate limits may block the next attempt.
    fn latest_unblocked(&self, now: Instant) -> Instant {
        let allowed = self.limits.max_wait.saturating_sub(self.blocked_for);
        clock::after(now, allowed).min(self.deadline)
    }

    fn allowed_wait(&self, now: Instant) -> Duration {
        self.latest_unblocked(now).saturating_duration_since(now)
    }

    fn attempt_limits(&self, now: Instant) -> AttemptLimits {
        let CallLimits { attempt_timeout, timeout, read_timeout, .. } = self.limits;
        let end = clock::after(now, attempt_timeout);
        let (deadline, kind, after) = if end < self.deadline {
            (end, TimeoutKind::Attempt, attempt_timeout)
        } else {
            (self.deadline, TimeoutKind::Call, timeout)
        };
        let max_bytes = self.limits.max_response_bytes;
        AttemptLimits { deadline, kind, after, read_timeout, max_bytes }
    }

    /// Returns the error of the call's own time limit. Nothing is in flight then.
    fn timed_out(&self) -> Error {
        let (limit, after) = (TimeoutKind::Call, self.limits.timeout);
        self.error(Failure::Timeout { limit, after, sent: false })
    }

    fn error(&self, failure: Failure) -> Error {
        let operation = self.request.operation.clone();
        Error::new(failure).with_operation(operation).with_stats(self.stats)
    }
}

impl Drop for CallState<'_> {
    fn drop(&mut self) {
        self.core.budget().call_ended();
    }
}
