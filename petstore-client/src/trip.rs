//! One call under way: its limits, what it has been through, and what each attempt means for it.
//!
//! Nothing is sent or waited for here; that is left to `pipeline`.

use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use crate::backoff::Schedule;
use crate::clock;
use crate::echo::Echo;
use crate::error::{Error, Journey, Kind, Limit, RateLimited, ServiceFault};
use crate::gate::{Hold, Wish};
use crate::headers::{retry_after, service_time};
use crate::options::Limits;
use crate::request::Request;
use crate::retry::{Budget, Outcome, Verdict, may_have_acted, verdict};
use crate::transport::{Deadline, Failure, Reply};

/// How an attempt ended, and how long its answer holds requests back.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) result: Result<Reply, Failure>,
    pub(crate) hold: Option<Hold>,
}

/// What a call does after an attempt.
#[derive(Debug)]
pub(crate) enum Step {
    Finish(Result<Reply, Error>),
    /// To the gate again, which holds the call back as long as it must.
    Again,
    /// To the gate again after a back-off.
    AfterWait(Duration),
    /// To the gate again with another key; without one, this is the end.
    WithAnotherKey(Error),
}

#[derive(Debug)]
pub(crate) struct Trip<'c> {
    pub(crate) request: &'c Request,
    pub(crate) limits: Limits,
    pub(crate) journey: Journey,
    /// The key that was used last, to be taken out of what is said of its answer.
    pub(crate) echo: Option<Echo>,
    deadline: Instant,
    /// How much of `max_wait` the rate limits have used up.
    held_back: Duration,
    schedule: Schedule,
    rekeyed: bool,
    /// Its number in line at the gate, from the first time it stood there.
    pub(crate) number: Option<u64>,
}

impl<'c> Trip<'c> {
    pub(crate) fn new(request: &'c Request, limits: Limits, schedule: Schedule) -> Self {
        let limits = limits.with(&request.options);
        Self {
            request,
            limits,
            journey: Journey { repeatable: request.method.is_idempotent(), ..Journey::default() },
            echo: None,
            deadline: limits.deadline(clock::now()),
            held_back: Duration::ZERO,
            schedule,
            rekeyed: false,
            number: None,
        }
    }

    /// Returns the latest moment at which the rate limits may let the next request go.
    pub(crate) fn latest(&self) -> Instant {
        let patience = self.limits.max_wait.saturating_sub(self.held_back);
        clock::after(clock::now(), patience).min(self.deadline)
    }

    /// Takes in how long the call stood at the gate, and whether a limit held it back there:
    /// waiting for own requests is not counted against `max_wait`.
    pub(crate) fn passed_gate(&mut self, waited: Duration, blocked: bool) {
        self.journey.waited += waited;
        if blocked {
            self.held_back += waited;
        }
    }

    /// Returns when the next attempt has to end.
    pub(crate) fn attempt_deadline(&self) -> Deadline {
        let after = self.limits.attempt_timeout;
        let own = Deadline::new(clock::after(clock::now(), after), Limit::Attempt, after);
        let whole = self.deadline();
        if own.at < whole.at { own } else { whole }
    }

    /// Refuses to begin an attempt for which no time is left: it would be sent and not awaited.
    pub(crate) fn in_time(&self) -> Result<(), Error> {
        if clock::now() < self.deadline { Ok(()) } else { Err(self.deadline().passed()) }
    }

    /// Returns when the whole call has to end.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::new(self.deadline, Limit::Call, self.limits.timeout)
    }

    /// Decides what comes after an attempt.
    pub(crate) fn decide(&mut self, attempt: Attempt, budget: &mut Budget) -> Step {
        let Some(outcome) = attempt.outcome() else {
            return Step::Finish(attempt.finish());
        };
        self.journey.attempts += 1;
        self.journey.maybe_processed |= may_have_acted(outcome);
        // An attempt whose key was refused is not counted against the limit.
        let counted = self.journey.attempts - u32::from(self.rekeyed);
        let may_go_on = counted < self.limits.max_attempts;
        match verdict(&self.request.method, outcome, attempt.hold.is_some()) {
            Verdict::Rekey if !self.rekeyed => {
                self.rekeyed = true;
                match attempt.finish() {
                    Err(refusal) => Step::WithAnotherKey(refusal),
                    done => Step::Finish(done),
                }
            }
            Verdict::HeldBack if may_go_on => match attempt.hold {
                Some(hold) if hold.until > self.latest() => {
                    Step::Finish(Err(self.too_long(hold, attempt.result.ok())))
                }
                _ => Step::Again,
            },
            Verdict::BackOff if may_go_on => {
                let asked = attempt.asked();
                let wait = self.schedule.next() + asked;
                let end = clock::after(clock::now(), wait);
                let in_time = end < self.deadline && (asked.is_zero() || end <= self.latest());
                if in_time && budget.spend() {
                    self.held_back += asked;
                    self.journey.waited += wait;
                    Step::AfterWait(wait)
                } else {
                    Step::Finish(attempt.finish())
                }
            }
            _ => {
                if matches!(outcome, Outcome::Answered(status) if status.is_success()) {
                    budget.earn();
                }
                Step::Finish(attempt.finish())
            }
        }
    }

    /// Returns what the call asks of the gate.
    pub(crate) fn wish(&self) -> Wish {
        Wish {
            number: self.number,
            lane: self.limits.lane,
            policy: self.limits.policy,
            latest: self.latest(),
        }
    }

    /// Returns the error for a wait that is longer than the call may wait.
    pub(crate) fn too_long(&self, hold: Hold, refusal: Option<Reply>) -> Error {
        let allowed = self.latest().saturating_duration_since(clock::now());
        rate_limited(hold, Some(allowed), refusal.map(fault))
    }
}

impl Attempt {
    /// Returns how the attempt ended; `None` where the request could not even be tried.
    fn outcome(&self) -> Option<Outcome> {
        match &self.result {
            Ok(reply) => Some(Outcome::Answered(reply.status)),
            Err(failure) if failure.error.is_invalid_request() || failure.error.is_tls() => None,
            Err(failure) if failure.never_left => Some(Outcome::NeverLeft),
            // A success that is too large will be too large again.
            Err(failure) if failure.error.is_body_too_large() => {
                failure.error.status().map(Outcome::Answered)
            }
            Err(_) => Some(Outcome::Lost),
        }
    }

    /// Returns how long a failed service asks to be left alone (`Retry-After`): it is no rate
    /// limit, so it goes for this call alone.
    fn asked(&self) -> Duration {
        let headers = self.result.as_ref().ok().map(|reply| &reply.headers);
        let asked = headers.and_then(|headers| retry_after(headers, service_time(headers)));
        asked.unwrap_or_default()
    }

    fn finish(self) -> Result<Reply, Error> {
        let reply = self.result.map_err(|failure| failure.error)?;
        if reply.status.is_success() {
            return Ok(reply);
        }
        match self.hold {
            Some(hold) if reply.status == StatusCode::TOO_MANY_REQUESTS => {
                Err(rate_limited(hold, None, Some(fault(reply))))
            }
            _ => Err(Error::new(Kind::Service(fault(reply)))),
        }
    }
}

fn rate_limited(hold: Hold, allowed: Option<Duration>, refusal: Option<ServiceFault>) -> Error {
    let limited = RateLimited {
        until: hold.until_service,
        wait: hold.until.saturating_duration_since(clock::now()),
        quota: hold.quota,
        allowed,
    };
    Error::new(Kind::RateLimited { limited, refusal })
}

fn fault(reply: Reply) -> ServiceFault {
    ServiceFault::new(reply.status, reply.headers, &reply.body)
}
