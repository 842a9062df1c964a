//! `back-off` and `steady-retry`: how long a client waits before it repeats a request that failed.

use std::{collections::VecDeque, time::Duration};

use super::{Judgement, Offence};
use crate::{
    exchange::Moment,
    report::{
        finding::{EvidenceRequest, Role},
        observed::{ObservedExchange, REACTION},
        rule::Rule,
        units::seconds,
    },
};

/// How many different requests of a client are watched.
const MAX_REQUESTS: usize = 64;
/// How many ends of the same request are remembered while several are in flight.
const MAX_ATTEMPTS: usize = 32;
/// How many successes show a steady pace, and how many are remembered.
const STEADY_SUCCESSES: usize = 5;
const MAX_SUCCESSES: usize = 8;
/// How long these successes must span.
const STEADY_SPAN: Duration = Duration::from_secs(5);
/// Shorter waits are a retry at once, which says nothing about a pace.
const MIN_WAIT: Duration = Duration::from_millis(20);
/// Longer waits are polling.
const MAX_STEADY_WAIT: Duration = Duration::from_secs(5);

/// The requests of one client that failed or may fail.
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// Of each watched request, in the order of `watched`: to be found quickly.
    fingerprints: Vec<u64>,
    watched: Vec<Watched>,
    next: usize,
}

/// All that is remembered of one request.
#[derive(Debug, Default)]
struct Watched {
    /// Arrivals of the last successes.
    successes: VecDeque<Moment>,
    attempts: VecDeque<Attempt>,
    row: Option<Row>,
    /// A finding about a steady pace, to be withdrawn if the pace is kept after the outage.
    suspect: Option<Suspect>,
}

#[derive(Debug)]
struct Attempt {
    has_failed: bool,
    is_told_to_wait: bool,
    request: EvidenceRequest,
}

/// A request that failed, and its repeats.
#[derive(Debug)]
struct Row {
    began: u64,
    first_arrival: Moment,
    first_end: Moment,
    connections: Vec<u64>,
    /// The first request, and the last ones.
    shown: VecDeque<EvidenceRequest>,
    repeats: u32,
    waits_together: Duration,
    last_waits: VecDeque<Duration>,
    /// The shortest wait, of at least [`MIN_WAIT`], before those.
    shortest_before: Option<Duration>,
    found: Option<Rule>,
}

#[derive(Debug)]
struct Suspect {
    began: u64,
    spacing: Duration,
    last_arrival: Moment,
    successes: u32,
}

impl Retries {
    pub(super) fn judge(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) {
        let has_failed = exchange.has_failed();
        let has_body = exchange.body.length > 0;
        if !has_failed && (has_body && self.watched.is_empty()) {
            return;
        }
        let fingerprint = exchange.fingerprint();
        let watched = match self.fingerprints.iter().position(|one| *one == fingerprint) {
            Some(place) => &mut self.watched[place],
            // Only of requests without a body are successes watched from the start.
            None if has_failed || !has_body => self.watch(fingerprint),
            None => return,
        };
        watched.extend_row(exchange, found);
        watched.remember(exchange, has_failed);
        if !has_failed {
            watched.judge_suspect(exchange, found);
        }
    }

    /// Begins to watch a request, in the place of one that is not being repeated.
    fn watch(&mut self, fingerprint: u64) -> &mut Watched {
        if self.watched.len() < MAX_REQUESTS {
            self.fingerprints.push(fingerprint);
            self.watched.push(Watched::default());
            let last = self.watched.len() - 1;
            return &mut self.watched[last];
        }
        let places = (0..MAX_REQUESTS).map(|step| (self.next + step) % MAX_REQUESTS);
        let idle = places.into_iter().find(|place| self.watched[*place].row.is_none());
        let place = idle.unwrap_or(self.next);
        self.next = (place + 1) % MAX_REQUESTS;
        self.fingerprints[place] = fingerprint;
        self.watched[place] = Watched::default();
        &mut self.watched[place]
    }
}

impl Watched {
    fn extend_row(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) {
        let before = |one: &&Attempt| one.request.ended.order < exchange.arrived.order;
        let Some(last) = self.attempts.iter().rev().find(before) else { return };
        let connections = self
            .row
            .as_ref()
            .map_or_else(|| vec![last.request.connection], |row| row.connections.clone());
        let wait = exchange.arrived.gap_since(&last.request.ended);
        let is_certain = connections.contains(&exchange.connection) && !exchange.is_multiplexed
            || exchange.opened.order > last.request.ended.order
            || wait >= REACTION;
        if !last.has_failed || last.is_told_to_wait || exchange.width == 1 && !is_certain {
            self.row = None;
            return;
        }
        let row = self.row.get_or_insert_with(|| Row::new(&last.request));
        row.push(exchange, wait);
        if !row.is_as_steady_as(&self.successes, exchange) {
            row.judge(exchange, found);
        }
        if row.found == Some(Rule::SteadyRetry) {
            let spacing = row.mean_spacing(exchange);
            let (began, last_arrival) = (row.began, last.request.arrived);
            self.suspect = Some(Suspect { began, spacing, last_arrival, successes: 0 });
        }
    }

    fn remember(&mut self, exchange: &ObservedExchange, has_failed: bool) {
        if !has_failed && exchange.body.length == 0 {
            if self.successes.len() == MAX_SUCCESSES {
                self.successes.pop_front();
            }
            self.successes.push_back(exchange.arrived);
        }
        // Of a client that sends one request at a time the last one is always the one before.
        let most = if exchange.width == 1 { 1 } else { MAX_ATTEMPTS };
        while self.attempts.len() >= most {
            self.attempts.pop_front();
        }
        self.attempts.push_back(Attempt {
            has_failed,
            is_told_to_wait: exchange.told_until().is_some(),
            request: exchange.as_evidence(Role::Offence),
        });
    }

    /// Withdraws the finding about a client that goes on at the same pace when the outage is over: it
    /// polls, whatever the answer.
    fn judge_suspect(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) {
        let Some(mut suspect) = self.suspect.take() else { return };
        let spacing = exchange.arrived.gap_since(&suspect.last_arrival);
        let (least, most) = (suspect.spacing.mul_f64(0.75), suspect.spacing.mul_f64(1.25));
        if spacing < least || spacing > most {
            return;
        }
        suspect.successes += 1;
        suspect.last_arrival = exchange.arrived;
        if suspect.successes == 2 {
            found.push(Judgement::Withdrawn { rule: Rule::SteadyRetry, began: suspect.began });
        } else {
            self.suspect = Some(suspect);
        }
    }
}

impl Row {
    /// How many connections are remembered, and how many of its last requests are shown.
    const MAX_CONNECTIONS: usize = 64;
    const MAX_SHOWN: usize = 7;
    const MAX_WAITS: usize = 5;

    fn new(first: &EvidenceRequest) -> Self {
        Self {
            began: first.number,
            first_arrival: first.arrived,
            first_end: first.ended,
            connections: vec![first.connection],
            shown: VecDeque::from([EvidenceRequest { role: Role::Cause, ..first.clone() }]),
            repeats: 0,
            waits_together: Duration::ZERO,
            last_waits: VecDeque::new(),
            shortest_before: None,
            found: None,
        }
    }

    fn push(&mut self, exchange: &ObservedExchange, wait: Duration) {
        self.repeats += 1;
        self.waits_together += wait;
        self.last_waits.push_back(wait);
        if self.last_waits.len() > Self::MAX_WAITS
            && let Some(before) = self.last_waits.pop_front()
            && before >= MIN_WAIT
        {
            self.shortest_before = Some(self.shortest_before.map_or(before, |it| it.min(before)));
        }
        if !self.connections.contains(&exchange.connection)
            && self.connections.len() < Self::MAX_CONNECTIONS
        {
            self.connections.push(exchange.connection);
        }
        if self.shown.len() == Self::MAX_SHOWN {
            self.shown.remove(1);
        }
        self.shown.push_back(exchange.as_evidence(Role::Offence));
    }

    /// Returns the mean time from one arrival to the next.
    fn mean_spacing(&self, exchange: &ObservedExchange) -> Duration {
        exchange.arrived.gap_since(&self.first_arrival) / self.repeats.max(1)
    }

    /// Whether the client sent this request as often while it succeeded.
    fn is_as_steady_as(&self, successes: &VecDeque<Moment>, exchange: &ObservedExchange) -> bool {
        let (Some(first), Some(last)) = (successes.front(), successes.back()) else { return false };
        let span = last.gap_since(first);
        let gaps = u32::try_from(successes.len() - 1).unwrap_or(1);
        successes.len() >= STEADY_SUCCESSES
            && span >= STEADY_SPAN
            && self.mean_spacing(exchange) >= (span / gaps).mul_f64(0.75)
    }

    fn judge(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) {
        let repeats = self.repeats / exchange.width;
        let spent = if exchange.width == 1 {
            self.waits_together
        } else {
            exchange.arrived.gap_since(&self.first_end)
        };
        let least = least_wait(repeats);
        let breaks = match self.found {
            Some(Rule::BackOff) => Some(Rule::BackOff),
            _ if repeats >= 3 && spent < least => Some(Rule::BackOff),
            Some(rule) => Some(rule),
            None if exchange.width == 1 && self.is_even() => Some(Rule::SteadyRetry),
            None => None,
        };
        let Some(rule) = breaks else { return };
        let before = self.found.replace(rule);
        if before == Some(Rule::SteadyRetry) && rule == Rule::BackOff {
            let (rule, began) = (Rule::SteadyRetry, self.began);
            found.push(Judgement::Withdrawn { rule, began });
        }
        let goes_on = before == Some(rule);
        let wait = self.last_waits.back().copied().unwrap_or_default();
        let text = match rule {
            Rule::SteadyRetry => format!(
                "{} {} was sent again {} times, the last time {} after the failure",
                exchange.method,
                exchange.path(),
                self.repeats,
                seconds(wait)
            ),
            _ => format!(
                "{} {} was sent again {} times within {}; with any back-off it takes more than {}",
                exchange.method,
                exchange.path(),
                self.repeats,
                seconds(spent),
                seconds(least)
            ),
        };
        let causes = if goes_on { Vec::new() } else { self.shown.iter().cloned().collect() };
        let offence = Offence::new(rule, self.began, text);
        found.push(Judgement::Offence(Offence { goes_on, causes, by: Some(wait), ..offence }));
    }

    /// Whether the last waits are about as long as one another, and none before was much shorter: a
    /// back-off that has reached its limit has grown before.
    fn is_even(&self) -> bool {
        let waits: Vec<Duration> = self.last_waits.iter().copied().collect();
        [(4, 1.1, Duration::from_millis(10)), (5, 1.25, Duration::ZERO)].into_iter().any(
            |(count, factor, slack)| {
                let Some(split) = waits.len().checked_sub(count) else { return false };
                let (before, last) = waits.split_at(split);
                let (Some(&shortest), Some(&longest)) = (last.iter().min(), last.iter().max())
                else {
                    return false;
                };
                let before = before.iter().filter(|wait| **wait >= MIN_WAIT);
                let has_grown =
                    before.chain(&self.shortest_before).any(|wait| *wait <= longest / 2);
                shortest >= MIN_WAIT
                    && longest <= shortest.mul_f64(factor) + slack
                    && longest < MAX_STEADY_WAIT
                    && !has_grown
            },
        )
    }
}

/// Returns how long so many retries take at least with any back-off in use: 6 ms, doubled each time,
/// is far below the quickest defaults.
fn least_wait(repeats: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(6);
    let doubled = FIRST * (2_u32.pow(repeats.min(6)) - 1);
    let tenths = Duration::from_millis(100) * repeats.min(12).saturating_sub(6);
    let halves = Duration::from_millis(500) * repeats.saturating_sub(12);
    if repeats == 3 { Duration::from_millis(20) } else { doubled + tenths + halves }
}
