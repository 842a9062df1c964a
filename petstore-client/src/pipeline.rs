//! The life of a call: gate, sign, send, observe, decide, wait, and round again.
//!
//! What an attempt means is left to `trip`, how it is made to `transport`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::time::{sleep, timeout_at};
use tracing::Instrument as _;

use crate::backoff::Schedule;
use crate::clock;
use crate::echo::Echo;
use crate::error::{Error, ServiceFault};
use crate::gate::{Gate, Permit};
use crate::headers::{date, rate_limit};
use crate::keys::{Keys, Signature};
use crate::notices::{Notices, Wait};
use crate::options::Limits;
use crate::quota::{Answer, Block};
use crate::request::Request;
use crate::response::{Head, Response};
use crate::retry::Budget;
use crate::transport::{Failure, Reply, Transport};
use crate::trip::{Attempt, Step, Trip};

/// What all calls of a client share.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) transport: Transport,
    pub(crate) keys: Keys,
    pub(crate) gate: Gate,
    pub(crate) limits: Limits,
    pub(crate) backoff: Backoff,
    pub(crate) budget: Mutex<Budget>,
    pub(crate) notices: Notices,
}

/// The bounds of the back-off schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Pipeline {
    /// Carries a call out and returns its successful response, body undecoded.
    pub(crate) async fn call(&self, request: &Request) -> Result<Response<Bytes>, Error> {
        let span = tracing::info_span!(
            "petstore.call",
            operation = request.operation.as_ref(),
            method = request.method.as_str(),
            path = request.url.path(),
        );
        let schedule = Schedule::new(self.backoff.first, self.backoff.longest);
        let mut trip = Trip::new(request, self.limits, schedule);
        let result = self.travel(&mut trip).instrument(span).await;
        let journey = trip.journey;
        match result {
            Ok(reply) => Ok(self.arrived(&mut trip, reply)),
            Err(error) => Err(error.of(request.operation.clone()).after(journey)),
        }
    }

    async fn travel(&self, trip: &mut Trip<'_>) -> Result<Reply, Error> {
        let mut another = None;
        loop {
            let permit = self.pass_gate(trip).await?;
            let signature = match another.take() {
                Some(signature) => signature,
                None => within(trip, self.keys.sign()).await?,
            };
            if signature.may_have_taken_time() && self.gate.is_blocked() {
                // Another call was refused while the key was fetched.
                another = Some(signature);
                continue;
            }
            trip.in_time()?;
            let number = trip.journey.attempts + 1;
            let span = tracing::debug_span!("petstore.attempt", number);
            let attempt = self.attempt(trip, &signature, permit).instrument(span).await;
            let step = trip.decide(attempt, &mut self.budget());
            match step {
                Step::Finish(result) => return result,
                Step::Again => {}
                Step::AfterWait(wait) => {
                    tracing::debug!(?wait, "backing off before another attempt");
                    sleep(wait).await;
                }
                Step::WithAnotherKey(refusal) => {
                    match within(trip, self.keys.sign_again(&signature)).await? {
                        Some(signature) => another = Some(signature),
                        None => return Err(refusal),
                    }
                }
            }
        }
    }

    async fn pass_gate(&self, trip: &mut Trip<'_>) -> Result<Permit<'_>, Error> {
        if let Some(block) = self.gate.blocked()
            && block.until <= trip.latest()
        {
            self.notices.waits(&Wait {
                operation: &trip.request.operation,
                quota: block.quota,
                length: block.until.saturating_duration_since(clock::now()),
                until: block.until_service,
            });
        }
        let mut waited = Duration::ZERO;
        let passed = self.gate.acquire(trip.latest(), &mut waited).await;
        trip.passed_gate(waited);
        passed.map_err(|block| trip.too_long(block, None))
    }

    async fn attempt(
        &self,
        trip: &mut Trip<'_>,
        signature: &Signature,
        permit: Permit<'_>,
    ) -> Attempt {
        let key = signature.authorization.clone();
        let most = trip.limits.max_response_bytes;
        let deadline = trip.attempt_deadline();
        let mut result = self.transport.send(trip.request, key, deadline, most).await;
        let block = observe(permit, &result);
        let echo = trip.echo.insert(Echo::of(&signature.authorization));
        if let Ok(reply) = &mut result
            && !reply.status.is_success()
        {
            echo.remove(&mut reply.headers);
            reply.body = echo.removed(std::mem::take(&mut reply.body));
        }
        Attempt { result, block }
    }

    fn arrived(&self, trip: &mut Trip<'_>, reply: Reply) -> Response<Bytes> {
        let request = trip.request;
        let deprecation = request.deprecation(&reply.headers);
        if let Some(deprecation) = &deprecation {
            self.notices.tell(&request.operation, deprecation);
        }
        let head = Head {
            operation: request.operation.clone(),
            status: reply.status,
            rate_limit: rate_limit(&reply.headers, service_time(&reply.headers)),
            deprecation: deprecation.map(Box::new),
            journey: trip.journey,
            echo: trip.echo.take(),
            headers: reply.headers,
        };
        Response::new(reply.body, head)
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows the gate what came, if only the head of an answer.
fn observe(permit: Permit<'_>, result: &Result<Reply, Failure>) -> Option<Block> {
    let (status, headers) = match result {
        Ok(reply) => (reply.status, &reply.headers),
        Err(failure) => match &failure.head {
            Some(head) => (head.0, &head.1),
            None => {
                tracing::debug!("no answer");
                return None;
            }
        },
    };
    tracing::debug!(status = status.as_u16(), "answered");
    let code = result.as_ref().ok().and_then(code_of);
    permit.observe(&Answer {
        status,
        headers,
        code: code.as_deref(),
        at: clock::now(),
        service_time: service_time(headers),
    })
}

/// Returns the code of a refusal: whether it is a ban, only the body can say.
fn code_of(reply: &Reply) -> Option<String> {
    if reply.status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    ServiceFault::new(reply.status, HeaderMap::new(), &reply.body).code
}

/// Returns the service's own time at which it answered, or the wall clock's.
fn service_time(headers: &HeaderMap) -> SystemTime {
    date(headers).unwrap_or_else(clock::wall)
}

/// Carries out work of a key provider, which knows no time limit.
async fn within<T>(
    trip: &Trip<'_>,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let deadline = trip.deadline();
    match timeout_at(deadline.at, work).await {
        Ok(result) => result,
        Err(_) => Err(deadline.passed()),
    }
}
