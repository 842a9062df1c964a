//! The life of a call: gate, sign, send, observe, decide, wait, and round again.
//!
//! What an attempt means is left to `trip`, how it is made to `transport`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument as _;

use crate::backoff::Schedule;
use crate::clock;
use crate::deprecation::Deprecation;
use crate::echo::Echo;
use crate::error::{Error, Quota, ServiceFault};
use crate::gate::{Gate, Gates, Hold, Permit, RateLimits};
use crate::headers::{rate_limit, service_time};
use crate::keys::{Keys, Signature};
use crate::notices::{Answer, Exchange, Notices, Refusal, Wait};
use crate::options::Limits;
use crate::request::Request;
use crate::response::{Head, Response};
use crate::retry::Budget;
use crate::transport::{Failure, Reply, Transport};
use crate::trip::{Attempt, Step, Trip};

/// After a wait that is longer, a key provider is asked again.
const SHORT: Duration = Duration::from_millis(100);

/// What all calls of a client share.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) transport: Transport,
    pub(crate) keys: Keys,
    pub(crate) gates: Gates,
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
            Err(error) => {
                // That there is no such pet says nothing against the operation's end.
                if let Some(headers) = error.headers().filter(|_| error.is_not_found()) {
                    self.announced(request, headers);
                }
                Err(error.of(request.operation.clone()).after(journey))
            }
        }
    }

    /// Returns what is known of the limits of the key that was used last.
    pub(crate) fn rate_limit(&self) -> RateLimits {
        let gate = match &self.keys {
            // Before the first call too: others may have shared what they know.
            Keys::Fixed(authorization) => Some(self.gates.of(authorization)),
            Keys::Provided(_) => self.gates.last(),
        };
        gate.map(|gate| gate.snapshot(&self.limits.policy)).unwrap_or_default()
    }

    async fn travel(&self, trip: &mut Trip<'_>) -> Result<Reply, Error> {
        let mut another = None;
        loop {
            let signature = match another.take() {
                Some(signature) => signature,
                None => within(trip, self.keys.sign()).await?,
            };
            let gate = self.gates.of(&signature.authorization);
            let (permit, waited) = self.pass_gate(&gate, trip).await?;
            if waited && signature.may_have_changed() {
                // The permit passes on, and the call comes back with the key of the hour.
                continue;
            }
            trip.in_time()?;
            let number = trip.journey.attempts + 1;
            let span = tracing::debug_span!("petstore.attempt", number);
            let attempt = self.attempt(trip, &signature, &gate, permit).instrument(span).await;
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

    /// Waits for a permit; says whether there was a wait.
    async fn pass_gate<'g>(
        &self,
        gate: &'g Gate,
        trip: &mut Trip<'_>,
    ) -> Result<(Permit<'g>, bool), Error> {
        let operation = &trip.request.operation;
        let mut blocked = false;
        let mut acquire = gate.acquire(trip.wish(), |hold: Hold| {
            blocked = true;
            self.notices.waits(&Wait {
                operation,
                quota: hold.quota,
                length: hold.until.saturating_duration_since(clock::now()),
                until: hold.until_service,
            });
        });
        // Behind own requests under way there is no end of the wait to foresee, but there is one.
        let deadline = trip.deadline();
        let passed = timeout_at(deadline.at, &mut acquire).await;
        let waited = acquire.waited();
        drop(acquire);
        trip.passed_gate(waited, blocked);
        match passed.map_err(|_| deadline.passed())? {
            Ok(permit) => {
                trip.number = Some(permit.number());
                Ok((permit, waited > SHORT))
            }
            Err(hold) => Err(trip.too_long(hold, None)),
        }
    }

    async fn attempt(
        &self,
        trip: &mut Trip<'_>,
        signature: &Signature,
        gate: &Gate,
        mut permit: Permit<'_>,
    ) -> Attempt {
        let deadline = trip.attempt_deadline();
        let echo = Echo::of(&signature.authorization);
        let key = signature.authorization.clone();
        let number = trip.journey.attempts + 1;
        let begun = clock::now();
        permit.sent();
        let head = match self.transport.send(trip.request, key, deadline).await {
            Ok(head) => head,
            Err(failure) => {
                tracing::debug!("no answer");
                if failure.never_left {
                    permit.never_left();
                }
                let result = Err(failure);
                self.notices.exchanged(|| exchange(trip.request, number, begun, &result));
                return Attempt { result, hold: None };
            }
        };
        tracing::debug!(status = head.status().as_u16(), "answered");
        // The gate hears of it before the body is read, which may take its time.
        let mut hold = permit.observe(head.status(), head.headers());
        let mut result = head.read(deadline, trip.limits.max_response_bytes).await;
        if let Ok(reply) = &mut result
            && !reply.status.is_success()
        {
            echo.remove(&mut reply.headers);
            reply.body = echo.removed(std::mem::take(&mut reply.body));
            if let Some(hold) = hold.as_mut().filter(|_| is_ban(reply)) {
                hold.quota = Quota::Banned;
                gate.banned();
            }
        }
        trip.echo = Some(echo);
        self.notices.exchanged(|| exchange(trip.request, number, begun, &result));
        if let (Some(hold), Ok(Reply { status, .. })) = (&hold, &result) {
            self.notices.refused(&Refusal {
                operation: &trip.request.operation,
                status: *status,
                quota: hold.quota,
                wait: hold.until.saturating_duration_since(clock::now()),
                until: hold.until_service,
                attempt: number,
            });
        }
        Attempt { result, hold }
    }

    fn arrived(&self, trip: &mut Trip<'_>, reply: Reply) -> Response<Bytes> {
        let request = trip.request;
        let deprecation = self.announced(request, &reply.headers);
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

    /// Returns, and tells of, the announced end of an operation.
    fn announced(&self, request: &Request, headers: &HeaderMap) -> Option<Deprecation> {
        let deprecation = request.deprecation(headers)?;
        self.notices.tell(&request.operation, &deprecation);
        Some(deprecation)
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn exchange<'e>(
    request: &'e Request,
    attempt: u32,
    begun: Instant,
    result: &'e Result<Reply, Failure>,
) -> Exchange<'e> {
    Exchange {
        operation: &request.operation,
        attempt,
        method: &request.method,
        url: &request.url,
        headers: &request.headers,
        body: request.body.as_ref(),
        elapsed: clock::now().saturating_duration_since(begun),
        answer: match result {
            Ok(Reply { status, headers, body }) => Ok(Answer { status: *status, headers, body }),
            Err(failure) => Err(&failure.error),
        },
    }
}

/// Returns whether a refusal is a ban: only its body can say.
fn is_ban(reply: &Reply) -> bool {
    let fault = || ServiceFault::new(reply.status, HeaderMap::new(), &reply.body);
    reply.status == StatusCode::TOO_MANY_REQUESTS && fault().code.as_deref() == Some("key_banned")
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
