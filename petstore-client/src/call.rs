//! Runs one call: authorize, acquire a permit, send, observe the response, decide, wait, repeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use tokio::time::{Instant, sleep, timeout_at};

use crate::auth::Credential;
use crate::backoff::Schedule;
use crate::client::{Client, Core};
use crate::clock;
use crate::deprecation::Deprecation;
use crate::error::{CallStats, Error, ErrorResponse, TimeoutKind};
use crate::events::{Attempt, Event, Finished, Received, Retrying, Throttled, Waiting};
use crate::options::{
    DEFAULT_ATTEMPT_TIMEOUT, DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_RESPONSE_BYTES, DEFAULT_MAX_WAIT,
    DEFAULT_READ_TIMEOUT, DEFAULT_TIMEOUT, RequestOptions,
};
use crate::rate_limit::{Acquire, BlockReason, Blocked, Limiter, Permit, Wait};
use crate::redact::Redactor;
use crate::request::Request;
use crate::response::{Response, ResponseMeta};
use crate::retry::{BudgetState, RetryDecision, may_have_acted};
use crate::transport::{AttemptLimits, read};

/// After a longer wait, the call asks the key provider again: the key may have rotated.
const REAUTHORIZE_AFTER: Duration = Duration::from_secs(5);
/// A request has certainly ended this long after its time limit.
const LEASE_SLACK: Duration = Duration::from_secs(2);

/// Runs a call. Keeps `may_have_acted` up to date, in case the call does not run to its end.
pub(crate) async fn run(
    client: Client,
    request: Request,
    deadline: Instant,
    may_have_acted: Arc<AtomicBool>,
) -> Result<Response<Bytes>, Error> {
    let Client { core, options } = &client;
    core.retries.budget(BudgetState::call_began);
    let mut call = CallState {
        core,
        options,
        request: &request,
        deadline,
        stats: CallStats {
            idempotent: request.idempotent,
            ..CallStats::default()
        },
        may_have_acted: &may_have_acted,
        schedule: core.retries.backoff.schedule(),
        blocked_for: Duration::ZERO,
        reauthorized: false,
        forced: request.forced,
        place: None,
    };
    let result = call.attempts().await;
    let stats = call.stats;
    drop(call);
    record(&result, &stats);
    let deprecation = match &result {
        Ok((response, _)) => Some(response.headers()),
        // A 404 may also have the headers.
        Err(error) => error.headers().filter(|_| error.is_not_found()),
    };
    let deprecation = deprecation.and_then(|headers| Deprecation::of(headers, request.removal));
    if let Some(deprecation) = &deprecation {
        core.events
            .notify_deprecated(&request.operation, deprecation);
    }
    let (response, redactor) = result.map_err(|error| {
        error
            .with_operation(request.operation.clone())
            .with_stats(stats)
    })?;
    let (head, body) = response.into_parts();
    let meta = ResponseMeta {
        operation: request.operation,
        url: request.url,
        page_size: request.page_size,
        status: head.status,
        headers: head.headers,
        deprecation: deprecation.map(Box::new),
        stats,
        redactor,
    };
    Ok(Response::new(body, meta))
}

/// Records in the call's span what was sent.
fn record(result: &Result<(http::Response<Bytes>, Redactor), Error>, stats: &CallStats) {
    let span = tracing::Span::current();
    if span.is_disabled() {
        return;
    }
    let status = match result {
        Ok((response, _)) => Some(response.status()),
        Err(error) => error.status(),
    };
    span.record(
        "http.response.status_code",
        status.map(|status| status.as_u16()),
    );
    span.record(
        "http.request.resend_count",
        stats.attempts.saturating_sub(1),
    );
    span.record("petstore.attempts", stats.attempts);
    let wait = u64::try_from(stats.waited.as_millis()).unwrap_or(u64::MAX);
    span.record("petstore.wait_ms", wait);
}

/// One call in progress.
struct CallState<'c> {
    core: &'c Core,
    options: &'c RequestOptions,
    request: &'c Request,
    deadline: Instant,
    stats: CallStats,
    /// Whether the service may have acted on the request, in any attempt, in case the task ends early.
    may_have_acted: &'c Arc<AtomicBool>,
    schedule: Schedule,
    /// The part of `max_wait` that has been used.
    blocked_for: Duration,
    reauthorized: bool,
    forced: bool,
    /// The call's place in the limiter's queue. Retries keep it.
    place: Option<u64>,
}

impl CallState<'_> {
    /// Sends the request as often as the retry policy allows.
    async fn attempts(&mut self) -> Result<(http::Response<Bytes>, Redactor), Error> {
        let credentials = &self.core.credentials;
        let mut replacement = None;
        loop {
            let is_latest = replacement.is_some();
            let credential = match replacement.take() {
                Some(credential) => credential,
                None => self.in_time(credentials.get()).await?,
            };
            let limiter = self.core.limiters.get(&credential.authorization);
            let (permit, waited) = self.acquire(&limiter).await?;
            if waited > REAUTHORIZE_AFTER && credential.may_rotate() && !is_latest {
                // The provider may be slow, and other calls need not wait for it.
                permit.not_sent();
                replacement = Some(self.in_time(credentials.get()).await?);
                continue;
            }
            let sent = clock::now();
            if sent >= self.deadline {
                permit.not_sent();
                return Err(self.timed_out());
            }
            let error = match self.attempt(&credential, &limiter, permit, sent).await {
                Ok(response) => return Ok((response, Redactor::new(&credential.authorization))),
                Err(error) => self.complete(error),
            };
            let classifier = self.core.retries.classifier.as_ref();
            match RetryDecision::of(&error, self.request, classifier) {
                RetryDecision::Fail => return Err(error),
                RetryDecision::Acquire => self.check_wait(error)?,
                RetryDecision::BackOff => self.back_off(error).await?,
                RetryDecision::Reauthorize if self.reauthorized => return Err(error),
                RetryDecision::Reauthorize => {
                    self.reauthorized = true;
                    replacement = self.in_time(credentials.replace(&credential, sent)).await?;
                    if replacement.is_none() {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Waits until the limiter permits a request. Returns the permit and the duration of the wait.
    async fn acquire<'l>(&mut self, limiter: &'l Limiter) -> Result<(Permit<'l>, Duration), Error> {
        let began = clock::now();
        let attempt_timeout = self
            .options
            .attempt_timeout
            .unwrap_or(DEFAULT_ATTEMPT_TIMEOUT);
        let request = Acquire {
            place: self.place,
            priority: self.options.priority.unwrap_or_default(),
            policy: self.core.policy,
            latest: self.latest_unblocked(began),
            forced: std::mem::take(&mut self.forced),
            lease: attempt_timeout.saturating_add(LEASE_SLACK),
        };
        let (events, operation) = (&self.core.events, &self.request.operation);
        let mut was_blocked = false;
        let acquired = limiter.acquire(request, |Wait { reason, blocked }| {
            was_blocked |= blocked.is_some();
            let until = blocked.map(|blocked| blocked.until);
            events.notify(|| {
                Event::Waiting(Waiting {
                    operation,
                    reason,
                    blocked,
                    until,
                })
            });
        });
        let acquired = timeout_at(self.deadline, acquired).await;
        if let Some(status) = limiter.store_status_change(&self.core.store_changes) {
            events.notify(|| Event::SharedStore(&status));
        }
        let waited = match &acquired {
            Ok(Ok(permit)) if !permit.has_waited => Duration::ZERO,
            _ => clock::now().saturating_duration_since(began),
        };
        self.stats.waited += waited;
        if was_blocked {
            self.blocked_for += waited;
        }
        let acquired = acquired.map_err(|_| self.timed_out())?;
        let permit = acquired.map_err(|blocked| {
            Error::rate_limited(blocked).with_allowed_wait(self.allowed_wait(clock::now()))
        })?;
        self.place = Some(permit.place);
        Ok((permit, waited))
    }

    /// Sends the request once. Returns an error for any response other than a success.
    async fn attempt(
        &mut self,
        credential: &Credential,
        limiter: &Limiter,
        permit: Permit<'_>,
        sent: Instant,
    ) -> Result<http::Response<Bytes>, Error> {
        let (Core { events, .. }, Request { operation, .. }) = (self.core, self.request);
        let number = self.stats.attempts + 1;
        let headers = self.request.with_defaults(&self.core.headers);
        let shown = events.are_observed().then(|| headers.clone());
        let request = Attempt {
            operation,
            attempt: number,
            method: &self.request.method,
            url: &self.request.url,
            headers: shown.as_ref().unwrap_or(&self.request.headers),
            body: &self.request.body,
        };
        events.notify(|| Event::Sending(request));
        let result = self.exchange(headers, credential, permit, sent).await;
        self.stats.attempts = number;
        self.stats.may_have_acted |= match &result {
            Ok((response, _)) => may_have_acted(response.status()),
            Err(error) => error.was_sent(),
        };
        self.may_have_acted
            .store(self.stats.may_have_acted, Ordering::Release);
        let result = result.map_err(|error| self.complete(error));
        let body = match &result {
            // The data of a success stays as it is, except in events.
            Ok((response, _)) if events.are_observed() => {
                Redactor::new(&credential.authorization).removed(response.body().clone())
            }
            _ => Bytes::new(),
        };
        events.notify(|| {
            let elapsed = clock::now().saturating_duration_since(sent);
            let outcome = result
                .as_ref()
                .map(|(response, _)| Received::new(response, &body));
            Event::Finished(Finished {
                request,
                elapsed,
                outcome,
            })
        });
        let (response, blocked) = result?;
        if response.status().is_success() {
            return Ok(response);
        }
        let response = ErrorResponse::new(response);
        let Some(mut blocked) = blocked else {
            return Err(Error::from_response(response));
        };
        if response.code.as_deref() == Some("key_banned") {
            blocked.reason = BlockReason::Ban;
            limiter.record_ban();
        }
        events.notify(|| {
            Event::Throttled(Throttled {
                operation,
                attempt: number,
                blocked,
            })
        });
        Err(Error::rate_limited(blocked).with_response(response))
    }

    /// Sends the request and reads the response. Redacts its headers, and its body unless it is a
    /// success. Also returns the block that the response requests.
    async fn exchange(
        &self,
        mut headers: HeaderMap,
        credential: &Credential,
        permit: Permit<'_>,
        sent: Instant,
    ) -> Result<(http::Response<Bytes>, Option<Blocked>), Error> {
        headers.insert(header::AUTHORIZATION, credential.authorization.clone());
        let limits = self.attempt_limits(sent);
        let mut pending = match self
            .core
            .network
            .send(self.request, headers, &limits, self.may_have_acted)
            .await
        {
            Ok(pending) => pending,
            Err(error) => {
                if !error.was_sent() {
                    permit.not_sent();
                }
                return Err(error);
            }
        };
        // Reading the body may take long.
        let blocked = permit.observe(pending.status(), pending.headers());
        let redactor = Redactor::new(&credential.authorization);
        redactor.remove(pending.headers_mut());
        let mut response = read(pending, &limits).await?;
        if !response.status().is_success() {
            *response.body_mut() = redactor.removed(std::mem::take(response.body_mut()));
        }
        Ok((response, blocked))
    }

    /// Fails if no attempt is left, or if a 429 blocks for longer than the call may wait.
    fn check_wait(&self, error: Error) -> Result<(), Error> {
        if !self.may_try_again() {
            return Err(error);
        }
        let now = clock::now();
        match error.retry_after() {
            Some(wait) if clock::after(now, wait) > self.latest_unblocked(now) => {
                Err(error.with_allowed_wait(self.allowed_wait(now)))
            }
            _ => Ok(()),
        }
    }

    /// Waits before another attempt, at least for the `Retry-After` of a 5xx, which delays only
    /// this call.
    async fn back_off(&mut self, error: Error) -> Result<(), Error> {
        let asked = error.retry_after().unwrap_or_default();
        let delay = self.schedule.next().saturating_add(asked);
        let now = clock::now();
        let end = clock::after(now, delay);
        let is_in_time =
            end < self.deadline && (asked.is_zero() || end <= self.latest_unblocked(now));
        let retries = &self.core.retries;
        if !(self.may_try_again() && is_in_time && retries.budget(BudgetState::spend)) {
            return Err(error);
        }
        self.blocked_for += asked;
        self.stats.waited += delay;
        self.core.events.notify(|| {
            let (operation, attempt) = (&*self.request.operation, self.stats.attempts);
            Event::Retrying(Retrying {
                operation,
                attempt,
                error: &error,
                delay,
            })
        });
        sleep(delay).await;
        Ok(())
    }

    fn may_try_again(&self) -> bool {
        let max_attempts = self.options.max_attempts.unwrap_or(DEFAULT_MAX_ATTEMPTS);
        // An attempt whose key was replaced does not count.
        self.stats.attempts - u32::from(self.reauthorized) < max_attempts
    }

    /// Returns the latest instant until which rate limits may block the next attempt.
    fn latest_unblocked(&self, now: Instant) -> Instant {
        let max_wait = self.options.max_wait.unwrap_or(DEFAULT_MAX_WAIT);
        clock::after(now, max_wait.saturating_sub(self.blocked_for)).min(self.deadline)
    }

    fn allowed_wait(&self, now: Instant) -> Duration {
        self.latest_unblocked(now).saturating_duration_since(now)
    }

    fn attempt_limits(&self, now: Instant) -> AttemptLimits {
        let RequestOptions {
            attempt_timeout,
            read_timeout,
            max_response_bytes,
            ..
        } = self.options;
        let attempt_timeout = attempt_timeout.unwrap_or(DEFAULT_ATTEMPT_TIMEOUT);
        let end = clock::after(now, attempt_timeout);
        let (deadline, limit) = if end < self.deadline {
            (end, (TimeoutKind::Attempt, attempt_timeout))
        } else {
            (self.deadline, (TimeoutKind::Call, self.timeout()))
        };
        AttemptLimits {
            deadline,
            limit,
            read_timeout: read_timeout.unwrap_or(DEFAULT_READ_TIMEOUT),
            max_bytes: max_response_bytes.unwrap_or(DEFAULT_MAX_RESPONSE_BYTES),
        }
    }

    fn timeout(&self) -> Duration {
        self.options.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// Awaits `work`, within the call's time limit.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        timeout_at(self.deadline, work)
            .await
            .unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// Returns the error of the call's time limit, when no request is in flight.
    fn timed_out(&self) -> Error {
        Error::timed_out(TimeoutKind::Call, self.timeout(), false)
    }

    /// Adds the operation and statistics of the call to an error.
    fn complete(&self, error: Error) -> Error {
        error
            .with_operation(self.request.operation.clone())
            .with_stats(self.stats)
    }
}

impl Drop for CallState<'_> {
    fn drop(&mut self) {
        self.core.retries.budget(|budget, _| budget.call_ended());
    }
}
