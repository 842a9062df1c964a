//! The life of one call: authorize, acquire, send, observe, decide, wait, and round again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument as _;

use super::core::{Core, Request};
use crate::auth::Credential;
use crate::backoff::Schedule;
use crate::clock;
use crate::error::{CallStats, Error, ErrorResponse, Failure, TimeoutKind};
use crate::events::{Event, Finished, Received, Retrying};
use crate::http::headers;
use crate::http::transport::RawResponse;
use crate::options::CallLimits;
use crate::rate_limit::{Acquire, BlockReason, Blocked, Limiter, Permit};
use crate::redact::Redactor;
use crate::response::{Response, ResponseMeta};
use crate::retry::{NextStep, may_have_acted, next_step};

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
    let mut state = CallState::new(&core, &request, limits, deadline);
    let result = state.attempts().await;
    let stats = state.stats;
    drop(state);
    match result {
        Ok((response, redactor)) => {
            let RawResponse { status, headers, body } = response;
            let deprecation = core.deprecation(&request, &headers);
            let link = headers.get_all(header::LINK).iter();
            let repeats_key = redactor.finds(&body)
                || link.into_iter().any(|link| redactor.finds(link.as_bytes()));
            let meta = ResponseMeta {
                operation: request.operation,
                url: request.http.url,
                page_size: request.page_size,
                status,
                headers,
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
            schedule: core.backoff.schedule(),
            blocked_for: Duration::ZERO,
            reauthorized: false,
            forced: request.forced,
            place: None,
        }
    }

    /// Sends the request as often as policy allows.
    async fn attempts(&mut self) -> Result<(RawResponse, Redactor), Error> {
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
            let attempt = self.attempt(&credential, &limiter, permit, (&redactor, sent)).await;
            let idempotent = self.stats.idempotent;
            match next_step(attempt.result, attempt.not_sent, idempotent, attempt.retry_after) {
                NextStep::Return(result) => return result.map(|response| (response, redactor)),
                NextStep::Reacquire(error) => self.check_wait(error)?,
                NextStep::Backoff(error, asked) => self.back_off(error, asked).await?,
                NextStep::Reauthorize(error) => match self.reauthorize(&credential, sent).await? {
                    Some(credential) => replacement = Some(credential),
                    None => return Err(error),
                },
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
        let mut was_blocked = false;
        let acquired = limiter.acquire(request, |wait| {
            was_blocked |= wait.blocked.is_some();
            self.core.report_wait(self.request, wait);
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

    /// Sends the request once, and judges what came.
    async fn attempt(
        &mut self,
        credential: &Credential,
        limiter: &Limiter,
        permit: Permit<'_>,
        (redactor, sent): (&Redactor, Instant),
    ) -> AttemptOutcome {
        let number = self.stats.attempts + 1;
        let span = tracing::debug_span!("petstore.attempt", number);
        let exchange = self.exchange(credential, permit, redactor, (number, sent)).instrument(span);
        let (response, blocked) = match exchange.await {
            Ok(received) => received,
            Err((error, not_sent)) => {
                // What could not be tried is not counted.
                let tried =
                    !matches!(error.failure(), Failure::InvalidRequest(_) | Failure::Tls { .. });
                self.stats.attempts += u32::from(tried);
                self.stats.may_have_acted |= !not_sent;
                return AttemptOutcome {
                    result: Err(error),
                    not_sent,
                    retry_after: Duration::ZERO,
                };
            }
        };
        self.stats.attempts = number;
        self.stats.may_have_acted |= may_have_acted(response.status);
        if response.status.is_success() {
            return AttemptOutcome {
                result: Ok(response),
                not_sent: false,
                retry_after: Duration::ZERO,
            };
        }
        let service_now = headers::date(&response.headers).unwrap_or_else(clock::wall);
        let retry_after = headers::retry_after(&response.headers, service_now).unwrap_or_default();
        let response = ErrorResponse::new(response);
        let failure = match blocked {
            Some(mut blocked) => {
                if response.code.as_deref() == Some("key_banned") {
                    blocked.reason = BlockReason::Ban;
                    limiter.record_ban();
                }
                self.core.report_throttled(self.request, number, blocked);
                Failure::RateLimited { blocked, allowed: None, response: Some(response) }
            }
            None => Failure::Response(response),
        };
        AttemptOutcome { result: Err(Error::new(failure)), not_sent: false, retry_after }
    }

    /// Sends the request and reads the response. Where none came, says whether the request cannot
    /// have reached the service.
    async fn exchange(
        &self,
        credential: &Credential,
        permit: Permit<'_>,
        redactor: &Redactor,
        (number, sent): (u32, Instant),
    ) -> Result<(RawResponse, Option<Blocked>), (Error, bool)> {
        let request = self.request.attempt(number);
        self.core.events.notify(|| Event::Sending(request));
        let (deadline, limit, after) = self.attempt_deadline(sent);
        let finished = |outcome| {
            Event::Finished(Finished {
                request,
                elapsed: clock::now().saturating_duration_since(sent),
                outcome,
            })
        };
        let (mut permit, mut blocked) = (Some(permit), None);
        let received = async {
            let Core { transport, .. } = self.core;
            let authorization = credential.authorization.clone();
            let pending = transport.send(&self.request.http, authorization, deadline).await?;
            tracing::debug!(status = pending.status().as_u16(), "answered");
            // Before the body is read, which may take its time.
            let permit = permit.take();
            blocked = permit.and_then(|permit| permit.observe(pending.status(), pending.headers()));
            pending.read(deadline, self.limits.max_response_bytes).await
        };
        match received.await {
            Ok(mut response) => {
                if !response.status.is_success() {
                    redactor.remove(&mut response.headers);
                    response.body = redactor.removed(response.body);
                }
                let RawResponse { status, headers, body } = &response;
                let received = Received { status: *status, headers, body };
                self.core.events.notify(|| finished(Ok(received)));
                Ok((response, blocked))
            }
            Err(error) => {
                let not_sent = error.not_sent();
                if let Some(permit) = permit.filter(|_| not_sent) {
                    permit.not_sent();
                }
                let origin = || self.request.http.url.origin().ascii_serialization();
                let connect = self.core.connect_timeout;
                let error = Error::new(Failure::of_attempt(error, origin, connect, (limit, after)));
                tracing::debug!(%error, "no whole response");
                self.core.events.notify(|| finished(Err(&error)));
                Err((error, not_sent))
            }
        }
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

    /// Pauses before another attempt; `asked` is what the service asks for, for this call alone.
    async fn back_off(&mut self, error: Error, asked: Duration) -> Result<(), Error> {
        let delay = self.schedule.next().saturating_add(asked);
        let now = clock::now();
        let end = clock::after(now, delay);
        let in_time = end < self.deadline && (asked.is_zero() || end <= self.latest_unblocked(now));
        if !(self.may_try_again() && in_time && self.core.budget().spend(self.core.age(now))) {
            return Err(error);
        }
        self.blocked_for += asked;
        self.stats.waited += delay;
        tracing::debug!(?delay, "backing off before another attempt");
        self.core.events.notify(|| {
            Event::Retrying(Retrying {
                operation: &self.request.operation,
                attempt: self.stats.attempts,
                error: &error,
                delay,
            })
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

    /// Returns when the next attempt has to end, and which limit says so.
    fn attempt_deadline(&self, now: Instant) -> (Instant, TimeoutKind, Duration) {
        let after = self.limits.attempt_timeout;
        let end = clock::after(now, after);
        if end < self.deadline {
            (end, TimeoutKind::Attempt, after)
        } else {
            (self.deadline, TimeoutKind::Call, self.limits.timeout)
        }
    }

    fn timed_out(&self) -> Error {
        Error::new(Failure::Timeout { limit: TimeoutKind::Call, after: self.limits.timeout })
    }
}

impl Drop for CallState<'_> {
    fn drop(&mut self) {
        self.core.budget().call_ended();
    }
}

/// What came of an attempt.
struct AttemptOutcome {
    result: Result<RawResponse, Error>,
    /// Whether the request cannot have reached the service.
    not_sent: bool,
    /// For how long a failing service asks to be left alone.
    retry_after: Duration,
}
