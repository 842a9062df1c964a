//! The clients of the simulation: the real ledger, an oracle that knows the service's state, and
//! common simple policies.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::rng::Rng;
use super::service::{Reply, Service, Wait};
use super::window::{DAY, MINUTE, SECOND};
use crate::http::headers::retry_after;
use crate::rate_limit::quota::clock::{LocalTime, ServiceTime};
use crate::rate_limit::quota::decision::Decision;
use crate::rate_limit::quota::outstanding::Reservation;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::{Reading, ResponseHead};
use crate::rate_limit::shared::engine::Engine;
use crate::rate_limit::{MemberId, QuotaWindow};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::simulator) enum Contender {
    Limiter,
    Oracle,
    RetryAfter,
    SharedPause,
    Backoff,
}

pub(in crate::simulator) struct SimulatedClient {
    pub(in crate::simulator) contender: Contender,
    pub(in crate::simulator) member: Engine,
    pub(in crate::simulator) policy: Policy,
    /// How far the member's clock, which follows the store's, is ahead.
    pub(in crate::simulator) ahead: i64,
    /// The oracle's requests that the service has not received yet.
    pub(in crate::simulator) on_the_way: u64,
    /// The end of the pause, which all tasks share.
    pause: i64,
    /// The latest end of a received `Retry-After`. Nothing may be sent before it.
    pub(in crate::simulator) blocked_until: i64,
}

/// How long a request may last.
pub(in crate::simulator) const LEASE: Duration = Duration::from_secs(45);

/// What the first in line may do.
pub(in crate::simulator) enum Turn {
    Send(Option<Reservation>),
    At(i64),
    Busy,
}

impl SimulatedClient {
    pub(in crate::simulator) fn new(
        contender: Contender,
        wall: i64,
        policy: Policy,
        (id, shared): (u64, bool),
    ) -> Self {
        let (now, wall) = (LocalTime(0), ServiceTime(wall));
        let member = if shared {
            Engine::of_member(MemberId(id), now, wall)
        } else {
            Engine::new(now, wall)
        };
        Self {
            contender,
            member,
            policy,
            ahead: 0,
            on_the_way: 0,
            pause: i64::MIN,
            blocked_until: i64::MIN,
        }
    }

    /// Returns when a member updates the record next.
    pub(in crate::simulator) fn update_at(&self, waiting: u64) -> Option<LocalTime> {
        self.member.member()?.update_at(waiting)
    }

    pub(in crate::simulator) fn local(&self, now: i64) -> LocalTime {
        LocalTime(now + self.ahead)
    }

    pub(in crate::simulator) fn turn(&mut self, now: i64, service: &mut Service) -> Turn {
        match self.contender {
            Contender::Limiter => {
                let now = self.local(now);
                self.member.expire(now);
                match self.member.decide(now, &self.policy) {
                    Decision::Send { probe } => {
                        let reservation = self.member.reserve(now, probe, &self.policy);
                        Turn::Send(Some(reservation))
                    }
                    Decision::WaitUntil(block) => Turn::At(block.until.0 - self.ahead),
                    Decision::Pause(until) => Turn::At(until.0 - self.ahead),
                    Decision::WaitForResponse(_) => Turn::Busy,
                }
            }
            Contender::Oracle => {
                let (left, wait) = service.left(now);
                if left > self.on_the_way {
                    self.on_the_way += 1;
                    return Turn::Send(None);
                }
                if left == 0 {
                    Turn::At(now + wait)
                } else {
                    Turn::Busy
                }
            }
            _ if self.pause > now => Turn::At(self.pause),
            _ => Turn::Send(None),
        }
    }

    /// Returns how many requests are outstanding after the end of the run. First answers one more
    /// request, a year later, which settles all earlier ones.
    pub(in crate::simulator) fn outstanding_at_rest(&mut self, now: i64) -> u64 {
        let later = self.local(now + 366 * DAY);
        self.member.expire(later);
        let Decision::Send { probe } = self.member.decide(later, &self.policy) else {
            // The service named a reset that is years away.
            return self.member.local().in_flight();
        };
        let request = self.member.reserve(later, probe, &self.policy);
        assert!(self.member.start(request, later, LEASE));
        let head = ResponseHead {
            status: 200,
            date: None,
            reading: None,
            retry_after: None,
        };
        self.member.record_response(request, later, &head);
        let local = self.member.local();
        local.in_flight() + local.unresolved()
    }

    /// Records a response. Returns how long the task itself waits if it was refused.
    pub(in crate::simulator) fn answered(
        &mut self,
        (reservation, attempt): (Option<Reservation>, u32),
        now: i64,
        reply: &Reply,
        rng: &mut Rng,
    ) -> i64 {
        let wait = match reply.wait {
            Some((Wait::Text(_), _)) | None => SECOND,
            Some((_, seconds)) => seconds * SECOND,
        };
        if reply.status == 429 {
            self.blocked_until = self.blocked_until.max(now + wait);
        }
        match self.contender {
            Contender::Limiter => {
                let now = self.local(now);
                let service_now = self.member.local().ledger().service_time(now);
                let head = head(reply, service_now);
                self.member
                    .record_response(reservation.unwrap(), now, &head);
                0
            }
            Contender::Oracle => 0,
            Contender::RetryAfter => wait,
            Contender::SharedPause => {
                if reply.status == 429 {
                    self.pause = self.pause.max(now + wait);
                }
                0
            }
            Contender::Backoff => rng.below((SECOND << attempt.min(6)).min(MINUTE)),
        }
    }
}

/// Reads a reply as the limiter reads a response.
fn head(reply: &Reply, believed: ServiceTime) -> ResponseHead {
    let date = reply.date.map(|date| ServiceTime(date * SECOND));
    let service = date.unwrap_or(believed).system();
    let garbage = |[limit, remaining, reset]: [&'static str; 3]| {
        let mut headers = HeaderMap::new();
        headers.append("x-ratelimit-limit", HeaderValue::from_static(limit));
        headers.append("x-ratelimit-remaining", HeaderValue::from_static(remaining));
        headers.append("x-ratelimit-reset", HeaderValue::from_static(reset));
        QuotaWindow::read_at(&headers, service)
            .map(|rate| (rate.limit, rate.remaining, ServiceTime::from(rate.reset)))
    };
    let described = reply
        .rate
        .map(|(limit, left, reset)| (limit, left, ServiceTime(reset * SECOND)));
    let reading = reply.garbage.map_or(described, garbage);
    let reading = reading.map(|(limit, remaining, reset)| Reading {
        limit,
        remaining,
        reset,
    });
    let wait = reply.wait.and_then(|(wait, seconds)| {
        let text = match wait {
            Wait::Seconds | Wait::Any => return Some(Duration::from_secs(seconds as u64)),
            Wait::Epoch => (service
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap()
                .as_secs()
                + seconds as u64)
                .to_string(),
            Wait::Text(text) => text.to_owned(),
            Wait::Absent => return None,
        };
        let mut headers = HeaderMap::new();
        headers.append(http::header::RETRY_AFTER, text.parse().unwrap());
        retry_after(&headers, service)
    });
    ResponseHead {
        status: reply.status,
        date,
        reading,
        retry_after: wait,
    }
}
