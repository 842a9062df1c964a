//! `back-off` and `steady-retry`: rules about waits before retries.

use std::{collections::VecDeque, time::Duration};

use super::{
    finding::{Evidence, Ruling},
    request::{JudgedRequest, Role, push_bounded, seconds},
    rule::Rule,
};
use crate::exchange::Moment;

/// The maximum number of watched requests per client.
const MAX_WATCHED: usize = 64;
/// The maximum number of remembered attempts at a request.
const MAX_ATTEMPTS: usize = 32;
/// The number of successes that show a steady rate, and the number that is remembered.
const STEADY_SUCCESSES: usize = 5;
const MAX_SUCCESSES: usize = 8;
/// The minimum time that these successes must span.
const STEADY_SPAN: Duration = Duration::from_secs(5);
/// The number of remembered waits.
const MAX_WAITS: usize = 12;
/// A shorter wait is an immediate retry.
const MIN_WAIT: Duration = Duration::from_millis(20);
/// A longer wait is polling.
const MAX_STEADY_WAIT: Duration = Duration::from_secs(5);

/// The watched requests of a client, least recently sent first.
#[derive(Debug, Default)]
pub(super) struct Retries(Vec<Watched>);

/// The state of a watched request.
#[derive(Debug, Default)]
struct Watched {
    fingerprint: u64,
    /// The last attempts, in order of their ends.
    attempts: VecDeque<JudgedRequest>,
    /// The arrivals of the last successes.
    successes: VecDeque<Moment>,
    row: Option<Row>,
    /// A series with a steady rate, which is withdrawn if the client keeps its rate after the
    /// outage.
    suspect: Option<Suspect>,
}

/// A failed request and its repeats.
#[derive(Debug)]
struct Row {
    first: JudgedRequest,
    repeats: u32,
    /// How many connections it came on at first, each of which may be another worker's.
    connections: u32,
    waits_together: Duration,
    last_waits: VecDeque<Duration>,
    /// The shortest wait of at least [`MIN_WAIT`].
    shortest_wait: Duration,
    found: Option<Rule>,
}

#[derive(Debug)]
struct Suspect {
    breach: u64,
    spacing: Duration,
    last_arrival: Moment,
    successes: u32,
}

impl Retries {
    pub(super) fn judge(&mut self, request: &JudgedRequest, has_body: bool, found: &mut Ruling) {
        let fingerprint = request.fingerprint;
        let place = self
            .0
            .iter()
            .position(|watched| watched.fingerprint == fingerprint);
        // Successes with a body are not watched before the first failure, because most bodies are
        // unique.
        if place.is_none() && has_body && !request.has_failed() {
            return;
        }
        let watched = match place {
            Some(place) => &mut self.0[place],
            None => self.watch(fingerprint),
        };
        watched.judge_repeat(request, found);
        if !request.has_failed() {
            watched.judge_suspect(request, found);
        }
        watched.remember(request, has_body);
    }

    /// Starts watching a request. Replaces one that is not being repeated.
    fn watch(&mut self, fingerprint: u64) -> &mut Watched {
        if self.0.len() == MAX_WATCHED {
            let idle = self.0.iter().position(|watched| watched.row.is_none());
            self.0.remove(idle.unwrap_or(0));
        }
        self.0.push(Watched {
            fingerprint,
            ..Watched::default()
        });
        let last = self.0.len() - 1;
        &mut self.0[last]
    }
}

impl Watched {
    fn judge_repeat(&mut self, request: &JudgedRequest, found: &mut Ruling) {
        let is_before = |one: &&JudgedRequest| one.ended.order < request.arrived.order;
        let Some(last) = self.attempts.iter().rev().find(is_before) else {
            return;
        };
        let began = self
            .row
            .as_ref()
            .map_or(last.number, |row| row.first.number);
        let is_on_row = || {
            let mut row = self
                .attempts
                .iter()
                .filter(|attempt| attempt.number >= began);
            row.any(|one| one.connection == request.connection) && !request.is_multiplexed
        };
        let is_certain = request.width > 1 || request.follows(last) || is_on_row();
        if !last.has_failed() || last.told_until.is_some() {
            self.row = None;
            return;
        }
        let row = self.row.get_or_insert_with(|| Row::new(last.clone()));
        if !is_certain {
            row.connections += 1;
            return;
        }
        row.push(request.arrived.gap_since(&last.ended));
        let spacing = row.mean_spacing(request);
        let is_usual = usual_spacing(&self.successes).is_some_and(|it| spacing >= it.mul_f64(0.75));
        let breach = if is_usual { None } else { row.breach(request) };
        if row.found == Some(Rule::SteadyRetry) || breach == Some(Rule::SteadyRetry) {
            let (breach, last_arrival) = (row.first.number, last.arrived);
            self.suspect = Some(Suspect {
                breach,
                spacing,
                last_arrival,
                successes: 0,
            });
        }
        let Some(rule) = breach else { return };
        let before = row.found.replace(rule);
        let mut evidence = row.evidence(rule, request);
        if before != Some(rule) {
            // A more severe finding replaces the previous one.
            found.withdrawn = before.map(|_| began);
            let in_row = |one: &&JudgedRequest| one.number > began && one.has_failed();
            let in_row = self.attempts.iter().filter(in_row).cloned();
            evidence = evidence.show(in_row.chain([row.first.with_role(Role::Cause)]));
        }
        found.add(rule, evidence);
    }

    fn remember(&mut self, request: &JudgedRequest, has_body: bool) {
        if !request.has_failed() && !has_body {
            push_bounded(&mut self.successes, request.arrived, MAX_SUCCESSES);
        }
        if !request.has_failed() && request.width == 1 {
            // Nothing else is in flight, so the success ends the series.
            self.row = None;
            self.attempts.clear();
        } else {
            push_bounded(&mut self.attempts, request.clone(), MAX_ATTEMPTS);
        }
    }

    /// Withdraws the finding if the client keeps the same rate after the outage, which means that
    /// it polls.
    fn judge_suspect(&mut self, request: &JudgedRequest, found: &mut Ruling) {
        let Some(mut suspect) = self.suspect.take() else {
            return;
        };
        let spacing = request.arrived.gap_since(&suspect.last_arrival);
        if spacing < suspect.spacing.mul_f64(0.75) || spacing > suspect.spacing.mul_f64(1.25) {
            return;
        }
        suspect.successes += 1;
        suspect.last_arrival = request.arrived;
        if suspect.successes == 2 {
            found.withdrawn = Some(suspect.breach);
        } else {
            self.suspect = Some(suspect);
        }
    }
}

/// Returns the mean time between the last successes, if there are enough for a rate.
fn usual_spacing(successes: &VecDeque<Moment>) -> Option<Duration> {
    let span = successes.back()?.gap_since(successes.front()?);
    let gaps = u32::try_from(successes.len() - 1).ok()?;
    let is_pace = successes.len() >= STEADY_SUCCESSES && span >= STEADY_SPAN;
    is_pace.then(|| span / gaps)
}

impl Row {
    fn new(first: JudgedRequest) -> Self {
        Self {
            first,
            repeats: 0,
            connections: 1,
            waits_together: Duration::ZERO,
            last_waits: VecDeque::new(),
            shortest_wait: Duration::MAX,
            found: None,
        }
    }

    fn push(&mut self, wait: Duration) {
        self.repeats += 1;
        self.waits_together += wait;
        push_bounded(&mut self.last_waits, wait, MAX_WAITS);
        if wait >= MIN_WAIT {
            self.shortest_wait = self.shortest_wait.min(wait);
        }
    }

    /// Returns the mean time from one arrival to the next.
    fn mean_spacing(&self, request: &JudgedRequest) -> Duration {
        request.arrived.gap_since(&self.first.arrived) / self.repeats
    }

    /// Returns how many workers may have sent the series.
    fn workers(&self, request: &JudgedRequest) -> u32 {
        self.connections.max(request.width)
    }

    /// Returns the last repeats that were faster than with any back-off: their number, their total
    /// wait, and the minimum.
    fn too_fast(&self, request: &JudgedRequest) -> Option<(u32, Duration, Duration)> {
        let workers = self.workers(request);
        let is_one = workers == 1;
        let waited = if is_one {
            self.waits_together
        } else {
            request.arrived.gap_since(&self.first.ended)
        };
        let all = (self.repeats, waited, least_wait(self.repeats / workers));
        // A back-off grows, so the last repeats of one worker are judged without the earlier ones.
        let last_waits = self.last_waits.iter().rev().filter(|_| is_one);
        let last = last_waits.scan((0, Duration::ZERO), |(repeats, waited), wait| {
            (*repeats, *waited) = (*repeats + 1, *waited + *wait);
            Some((*repeats, *waited, least_wait(*repeats)))
        });
        let is_too_fast = |&(_, waited, least): &(u32, Duration, Duration)| waited < least;
        [all].into_iter().chain(last).find(is_too_fast)
    }

    /// Returns the rule that the series breaks with this request, if any.
    fn breach(&self, request: &JudgedRequest) -> Option<Rule> {
        match self.found {
            Some(Rule::BackOff) => Some(Rule::BackOff),
            _ if self.too_fast(request).is_some() => Some(Rule::BackOff),
            Some(rule) => Some(rule),
            None if request.width == 1 && self.is_even() => Some(Rule::SteadyRetry),
            None => None,
        }
    }

    fn evidence(&self, rule: Rule, request: &JudgedRequest) -> Evidence {
        let last_wait = self.last_waits.back().copied();
        let (repeats, end) = if rule == Rule::SteadyRetry {
            let wait = seconds(last_wait.unwrap_or_default());
            (
                self.repeats,
                format!("the last time {wait} after the failure"),
            )
        } else if let Some((repeats, waited, least)) = self.too_fast(request) {
            let (waited, least) = (seconds(waited), seconds(least));
            (
                repeats,
                format!("within {waited}; with any back-off it takes more than {least}"),
            )
        } else {
            // It was faster before: the text that is there says so.
            return Evidence::new(self.first.number, request, String::new());
        };
        let text = format!("{} was sent again {repeats} times, {end}", request.name());
        Evidence {
            by: last_wait,
            ..Evidence::new(self.first.number, request, text)
        }
    }

    /// Whether the last waits are about equal, and no earlier wait was much shorter. A back-off at
    /// its limit has grown before.
    fn is_even(&self) -> bool {
        [
            (4, 1.1, Duration::from_millis(10)),
            (5, 1.25, Duration::ZERO),
        ]
        .into_iter()
        .any(|(count, factor, slack)| {
            let waits = || self.last_waits.iter().rev().take(count).copied();
            let shortest = waits().min().unwrap_or_default();
            let longest = waits().max().unwrap_or_default();
            self.last_waits.len() >= count
                && shortest >= MIN_WAIT
                && longest <= shortest.mul_f64(factor) + slack
                && longest < MAX_STEADY_WAIT
                && self.shortest_wait > longest / 2
        })
    }
}

/// Returns the minimum time of this many retries with any common back-off: 6 ms, doubled each time,
/// is far below the fastest defaults. Less than three may be without any.
fn least_wait(repeats: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(6);
    let doubled = FIRST * (2_u32.pow(repeats.min(6)) - 1);
    let tenths = Duration::from_millis(100) * repeats.min(12).saturating_sub(6);
    let halves = Duration::from_millis(500) * repeats.saturating_sub(12);
    match repeats {
        0..3 => Duration::ZERO,
        3 => Duration::from_millis(20),
        _ => doubled + tenths + halves,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_wait_doubles_six_times_and_grows_by_tenths_and_halves_of_a_second_then() {
        let expected = [
            (2, 0),
            (3, 20),
            (4, 90),
            (6, 378),
            (7, 478),
            (12, 978),
            (13, 1_478),
        ];
        for (repeats, milliseconds) in expected {
            assert_eq!(
                least_wait(repeats),
                Duration::from_millis(milliseconds),
                "{repeats}"
            );
        }
    }
}
