//! Who decides when a request may go: the gate, one who knows the service's state, and the simple
//! policies that programs have.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::rng::Rng;
use super::service::{Reply, Service, Wait};
use super::window::{DAY, MINUTE, SECOND};
use crate::headers::{rate_limit, retry_after};
use crate::quota::{Head, Keeper, Local, Policy, Rate, Ticket, Time, Verdict};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Gate,
    Oracle,
    RetryAfter,
    SharedPause,
    Backoff,
}

pub(super) struct Client {
    pub(super) kind: Kind,
    pub(super) keeper: Keeper,
    pub(super) policy: Policy,
    /// The oracle's requests that have not come to the service yet.
    pub(super) on_the_way: u64,
    /// The end of the pause that all share.
    pause: i64,
    /// The end of the longest wait that an answer named: nothing may be sent before.
    pub(super) told: i64,
}

/// What the first in line may do.
pub(super) enum Turn {
    Go(Option<Ticket>),
    At(i64),
    Busy,
}

impl Client {
    pub(super) fn new(kind: Kind, wall: i64, policy: Policy) -> Self {
        let keeper = Keeper::new(Local(0), Time(wall));
        Self { kind, keeper, policy, on_the_way: 0, pause: i64::MIN, told: i64::MIN }
    }

    pub(super) fn turn(&mut self, now: i64, service: &mut Service) -> Turn {
        match self.kind {
            Kind::Gate => match self.keeper.verdict(Local(now), &self.policy) {
                Verdict::Go(pass) => Turn::Go(Some(self.keeper.grant(Local(now), pass))),
                Verdict::Blocked(block) => Turn::At(self.keeper.surely(block.until).0),
                Verdict::Paced(at) | Verdict::Settling(at) => Turn::At(self.keeper.surely(at).0),
                Verdict::Busy(_) => Turn::Busy,
            },
            Kind::Oracle => {
                let (left, wait) = service.left(now);
                if left > self.on_the_way {
                    self.on_the_way += 1;
                    return Turn::Go(None);
                }
                if left == 0 { Turn::At(now + wait) } else { Turn::Busy }
            }
            _ if self.pause > now => Turn::At(self.pause),
            _ => Turn::Go(None),
        }
    }

    /// Returns what the gate reserves while nothing is under way, once one more request has been
    /// answered, long after: that settles the fate of all before it.
    pub(super) fn reserved_at_rest(&mut self, now: i64) -> u64 {
        let later = Local(now + 366 * DAY);
        let Verdict::Go(pass) = self.keeper.verdict(later, &self.policy) else {
            // The service named a reset that is years away.
            return self.keeper.state.in_flight().into();
        };
        let ticket = self.keeper.grant(later, pass);
        let head = Head { status: 200, date: None, rate: None, retry_after: None };
        self.keeper.answered(ticket, later, later, &head, Duration::ZERO);
        self.keeper.state.reserved()
    }

    /// Takes in an answer; returns how long the task that was refused waits by itself.
    pub(super) fn answered(
        &mut self,
        (ticket, sent, attempt): (Option<Ticket>, i64, u32),
        now: i64,
        reply: &Reply,
        rng: &mut Rng,
    ) -> i64 {
        let wait = match reply.wait {
            Some((Wait::Text(_), _)) | None => SECOND,
            Some((_, seconds)) => seconds * SECOND,
        };
        if reply.status == 429 {
            self.told = self.told.max(now + wait);
        }
        match self.kind {
            Kind::Gate => {
                let head = head(reply, self.keeper.service_time(Local(now)));
                let step = self.keeper.state.refusals_in_a_row.min(8);
                let extra = Duration::from_micros(rng.next() % ((2 * SECOND as u64) << step));
                self.keeper.answered(ticket.unwrap(), Local(sent), Local(now), &head, extra);
                0
            }
            Kind::Oracle => 0,
            Kind::RetryAfter => wait,
            Kind::SharedPause => {
                if reply.status == 429 {
                    self.pause = self.pause.max(now + wait);
                }
                0
            }
            Kind::Backoff => rng.below((SECOND << attempt.min(6)).min(MINUTE)),
        }
    }
}

/// Reads a reply as the gate's door reads one.
fn head(reply: &Reply, believed: Time) -> Head {
    let date = reply.date.map(|date| Time(date * SECOND));
    let service = date.unwrap_or(believed).system();
    let garbage = |[limit, remaining, reset]: [&'static str; 3]| {
        let mut headers = HeaderMap::new();
        headers.append("x-ratelimit-limit", HeaderValue::from_static(limit));
        headers.append("x-ratelimit-remaining", HeaderValue::from_static(remaining));
        headers.append("x-ratelimit-reset", HeaderValue::from_static(reset));
        rate_limit(&headers, service)
            .map(|rate| (rate.limit, rate.remaining, Time::from(rate.reset)))
    };
    let told = reply.rate.map(|(limit, left, reset)| (limit, left, Time(reset * SECOND)));
    let rate = reply.garbage.map_or(told, garbage);
    let rate = rate.map(|(limit, remaining, reset)| Rate { limit, remaining, reset });
    let wait = reply.wait.and_then(|(wait, seconds)| {
        let text = match wait {
            Wait::Seconds | Wait::Any => return Some(Duration::from_secs(seconds as u64)),
            Wait::Epoch => (service.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
                + seconds as u64)
                .to_string(),
            Wait::Text(text) => text.to_owned(),
            Wait::Absent => return None,
        };
        let mut headers = HeaderMap::new();
        headers.append(http::header::RETRY_AFTER, text.parse().unwrap());
        retry_after(&headers, service)
    });
    Head { status: reply.status, date, rate, retry_after: wait }
}
