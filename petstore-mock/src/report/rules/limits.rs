//! `told-to-wait`, `retry-after` and `quota-ignored`: what a client did with what it was told about
//! its limits.

use std::{collections::VecDeque, time::Duration};

use super::{Judgement, Offence};
use crate::{
    exchange::Moment,
    report::{
        finding::{EvidenceRequest, Role},
        observed::{ObservedExchange, REACTION, ToldUntil},
        rule::Rule,
        units::{clock_time, seconds},
    },
};

/// How many answers that tell to wait are remembered.
const MAX_TOLD: usize = 64;
/// How many workers may each learn by one request of their own that they are to wait: as many as
/// bring on a ban.
const MAX_WORKERS: usize = 10;
/// How many refusals at once are not yet a burst.
const MAX_REFUSED_AT_ONCE: usize = 5;

/// What one client was told about its limits.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// By answers of 429, which speak of the key.
    waits: VecDeque<Told>,
    /// By answers of 503, which speak of one request.
    pauses: VecDeque<Told>,
    window: Window,
    used_up: Option<UsedUp>,
    refused: VecDeque<Moment>,
}

/// An answer that told the client to wait.
#[derive(Debug)]
struct Told {
    until: ToldUntil,
    fingerprint: u64,
    is_multiplexed: bool,
    answer: EvidenceRequest,
}

/// A time in which the client was told to wait, from the first such answer on.
#[derive(Debug, Default)]
struct Window {
    /// The number of the first request that broke the rule in it.
    began: Option<u64>,
    /// The connections, open before, on which one request was forgiven.
    workers: Vec<u64>,
    /// Whether a request on a connection opened since was forgiven.
    is_second_process: bool,
}

/// An answer of `Remaining: 0`.
#[derive(Debug)]
struct UsedUp {
    reset: Duration,
    connection: u64,
    answer: EvidenceRequest,
}

impl Told {
    /// Whether the sender of a request can have read this answer, by the connection it used.
    fn was_read_by(&self, exchange: &ObservedExchange) -> bool {
        let is_same = self.answer.connection == exchange.connection;
        is_same
            && (!self.is_multiplexed || exchange.arrived.gap_since(&self.answer.ended) >= REACTION)
    }

    /// Whether a request repeats the one that was answered, on a connection opened since.
    fn is_repeated_by(&self, exchange: &ObservedExchange) -> bool {
        self.fingerprint == exchange.fingerprint()
            && exchange.opened.order > self.answer.ended.order
            && !(exchange.is_parallel && exchange.arrived.gap_since(&self.answer.ended) < REACTION)
    }
}

impl Limits {
    /// Judges a request against what the client was told before; returns whether it was told to wait.
    pub(super) fn judge(
        &mut self,
        exchange: &ObservedExchange,
        found: &mut Vec<Judgement>,
    ) -> bool {
        let is_waiting = self.judge_wait(exchange, found);
        let is_paused = !self.pauses.is_empty() && self.judge_pause(exchange, found);
        let told = match exchange.answer() {
            Some(429) => &mut self.waits,
            Some(503) => &mut self.pauses,
            _ => return is_waiting || is_paused,
        };
        let Some(until) = exchange.told_until() else { return is_waiting || is_paused };
        let (fingerprint, connection) = (exchange.fingerprint(), exchange.connection);
        told.retain(|one| {
            !one.until.is_over(&exchange.ended)
                && (one.fingerprint != fingerprint || one.answer.connection != connection)
        });
        if told.len() == MAX_TOLD {
            told.pop_front();
        }
        let answer = exchange.as_evidence(Role::Cause);
        let is_multiplexed = exchange.is_multiplexed;
        told.push_back(Told { until, fingerprint, is_multiplexed, answer });
        is_waiting || is_paused
    }

    fn judge_wait(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) -> bool {
        let current = || known(&self.waits, exchange);
        let Some(last) = current().max_by_key(|told| told.until.at) else {
            self.window = Window::default();
            return false;
        };
        let since = current().map(|told| &told.answer.ended).min_by_key(|ended| ended.order);
        let is_told = current().any(|told| told.was_read_by(exchange))
            || current().any(|told| told.is_repeated_by(exchange));
        let is_guilty = is_told
            || since.is_some_and(|since| {
                exchange.arrived.gap_since(since) >= REACTION
                    && !self.window.forgives(exchange, exchange.opened.order > since.order)
            });
        if is_guilty {
            let goes_on = self.window.began.is_some();
            let began = *self.window.began.get_or_insert(exchange.number);
            found.push(Judgement::Offence(if goes_on {
                let offence = Offence::new(Rule::ToldToWait, began, String::new());
                Offence { goes_on, ..offence }
            } else {
                early(Rule::ToldToWait, last, exchange)
            }));
        }
        true
    }

    fn judge_pause(&self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) -> bool {
        let fingerprint = exchange.fingerprint();
        let of_request = |told: &&Told| told.fingerprint == fingerprint;
        let current = || known(&self.pauses, exchange).filter(of_request);
        let is_told = |told: &Told| told.was_read_by(exchange) || told.is_repeated_by(exchange);
        let last = current().max_by_key(|told| told.until.at);
        if let Some(last) = last.filter(|_| current().any(is_told)) {
            found.push(Judgement::Offence(early(Rule::RetryAfter, last, exchange)));
        }
        last.is_some()
    }

    /// Notes once a client that it went beyond a quota it knew.
    pub(super) fn judge_quota(
        &mut self,
        exchange: &ObservedExchange,
        is_waiting: bool,
        is_noted: &mut bool,
        found: &mut Vec<Judgement>,
    ) {
        if *is_noted {
            return;
        }
        if exchange.answer() == Some(429) {
            let used_up = self.used_up.as_ref().filter(|one| one.is_known_to(exchange));
            let now = exchange.arrived;
            self.refused.retain(|ended| now.gap_since(ended) < REACTION);
            let text = match used_up {
                Some(one) if !is_waiting => {
                    let early = seconds(one.reset.saturating_sub(now.at));
                    format!("refused {early} before the reset, after an answer of Remaining: 0")
                }
                _ if self.refused.len() >= MAX_REFUSED_AT_ONCE => {
                    format!("more than {MAX_REFUSED_AT_ONCE} requests were refused at once")
                }
                _ => {
                    self.refused.push_back(exchange.ended);
                    return;
                }
            };
            *is_noted = true;
            let causes = used_up.map(|one| one.answer.clone()).into_iter().collect();
            let offence = Offence::new(Rule::QuotaIgnored, exchange.number, text);
            found.push(Judgement::Offence(Offence { causes, ..offence }));
        } else if let (Some((0, reset)), Some(_)) = (exchange.quota, exchange.answer()) {
            let (connection, answer) = (exchange.connection, exchange.as_evidence(Role::Cause));
            self.used_up = Some(UsedUp { reset, connection, answer });
        }
    }
}

impl Window {
    /// Whether a request is forgiven that came later than its sender could react, but may come from a
    /// worker, or another process, that was not told itself.
    fn forgives(&mut self, exchange: &ObservedExchange, is_new: bool) -> bool {
        if is_new {
            return !std::mem::replace(&mut self.is_second_process, true);
        }
        let is_first = !self.workers.contains(&exchange.connection);
        if is_first && self.workers.len() < MAX_WORKERS {
            self.workers.push(exchange.connection);
            return true;
        }
        false
    }
}

impl UsedUp {
    fn is_known_to(&self, exchange: &ObservedExchange) -> bool {
        let ended = &self.answer.ended;
        self.reset > exchange.arrived.at
            && ended.order < exchange.arrived.order
            && (self.connection == exchange.connection && !exchange.is_multiplexed
                || exchange.opened.order > ended.order
                || exchange.arrived.gap_since(ended) >= REACTION)
    }
}

/// Returns the answers that came before a request and whose time has not elapsed.
fn known<'a>(
    told: &'a VecDeque<Told>,
    exchange: &'a ObservedExchange,
) -> impl Iterator<Item = &'a Told> {
    told.iter().filter(|one| {
        one.answer.ended.order < exchange.arrived.order && !one.until.is_over(&exchange.arrived)
    })
}

/// Describes a request that came before a time that was told.
fn early(rule: Rule, told: &Told, exchange: &ObservedExchange) -> Offence {
    let early = told.until.at.saturating_sub(exchange.arrived.at);
    let answer = &told.answer;
    let status = answer.status.unwrap_or_default();
    let cause = if answer.banned { "the key is banned, " } else { "" };
    let value = answer.retry_after.as_deref().unwrap_or_default();
    let until = clock_time(told.until.at);
    let wait = format!("{until} ({cause}{status}, Retry-After: {value}, #{})", answer.number);
    let text = format!(
        "{} {} came at {}, {} too early",
        exchange.method,
        exchange.path(),
        clock_time(exchange.arrived.at),
        seconds(early),
    );
    Offence {
        causes: vec![answer.clone()],
        told: Some(format!("wait until {wait}")),
        by: Some(early),
        ..Offence::new(rule, exchange.number, text)
    }
}
