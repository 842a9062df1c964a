//! A key's story: processes ask the ledger for requests, and the service answers, second by second.

use std::collections::BTreeMap;

use crate::rate_limit::Policy;
use crate::rate_limit::quota::instant::{LedgerTime, SECOND, ServiceTime};
use crate::rate_limit::quota::reading::{Outcome, Reading, ResponseHead};
use crate::rate_limit::quota::terms::Terms;
use crate::rate_limit::quota::{Answer, Ledger, Report};
use crate::rate_limit::view::{BlockReason, RateLimits, WaitReason};

pub(super) const HOUR: i64 = 3_600;
pub(super) const ME: u64 = 1;
pub(super) const OTHER: u64 = 2;

/// Returns the service's time, a number of seconds after the story began. It began at 8:00.
pub(super) fn service(second: i64) -> ServiceTime {
    ServiceTime((1_800_000_000 + second) * SECOND)
}

/// Returns what a response says of a quota that resets at this second.
pub(super) fn reading(limit: u64, remaining: u64, reset: i64) -> Option<Reading> {
    Some(Reading {
        limit,
        remaining,
        reset: service(reset),
    })
}

/// What happened to a key so far.
#[derive(Debug, Clone)]
pub(super) struct Story {
    pub(super) ledger: Ledger,
    /// The time on the store's clock.
    now: LedgerTime,
    /// The process that acts.
    who: u64,
    processes: BTreeMap<u64, Process>,
}

#[derive(Debug, Clone)]
struct Process {
    terms: Terms,
    in_flight: u64,
    probes: u64,
    /// The number of its requests that have ended.
    ended: u64,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    who: u64,
    at: LedgerTime,
    pub(super) is_probe: bool,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            terms: Policy::default().terms(),
            in_flight: 0,
            probes: 0,
            ended: 0,
        }
    }
}

impl Story {
    pub(super) fn new() -> Self {
        Self {
            ledger: Ledger::default(),
            now: LedgerTime(0),
            who: ME,
            processes: BTreeMap::new(),
        }
    }

    /// Begins with a response that shows a window of the minute, which resets at second 60.
    pub(super) fn with_window(limit: u64, remaining: u64) -> Self {
        let mut story = Self::new();
        let first = story.send();
        story.answer(first, reading(limit, remaining, 60));
        story
    }

    /// Goes on at a second on the store's clock.
    pub(super) fn at(&mut self, second: i64) -> &mut Self {
        self.at_millis(1_000 * second)
    }

    pub(super) fn at_millis(&mut self, millis: i64) -> &mut Self {
        self.now = LedgerTime(millis * SECOND / 1_000);
        self
    }

    /// Lets a process act from now on.
    pub(super) fn by(&mut self, who: u64) -> &mut Self {
        self.who = who;
        self
    }

    /// Changes the settings of the process that acts.
    pub(super) fn set(&mut self, change: impl FnOnce(&mut Terms)) {
        change(&mut self.process().terms);
    }

    fn process(&mut self) -> &mut Process {
        self.processes.entry(self.who).or_default()
    }

    /// Returns a report in which these many calls wait.
    pub(super) fn report(&self, waiting: u64) -> Report {
        let process = self.processes.get(&self.who).cloned().unwrap_or_default();
        Report {
            holder: self.who,
            first_outcome: process.ended,
            outcomes: Vec::new(),
            in_flight: process.in_flight,
            has_probe: process.probes > 0,
            waiting,
            forces: false,
            was_banned: false,
            is_alone: false,
            leaves: false,
            forgets: false,
            terms: process.terms,
        }
    }

    /// Reports, and sends what is granted.
    pub(super) fn exchange(&mut self, report: &Report) -> Answer {
        let answer = self.ledger.exchange(report, self.now);
        let process = self.process();
        process.in_flight += answer.granted;
        process.probes += answer.granted * u64::from(answer.is_probe);
        answer
    }

    /// Asks for these many requests, and sends those that are granted.
    pub(super) fn ask(&mut self, waiting: u64) -> Answer {
        self.exchange(&self.report(waiting))
    }

    /// Sends a request, which must be granted.
    pub(super) fn send(&mut self) -> Sent {
        let answer = self.ask(1);
        assert_eq!(answer.granted, 1, "{answer:?} at {:?}", self.now);
        self.sent(answer.is_probe)
    }

    /// Sends a request, whether it is granted or not.
    pub(super) fn send_anyway(&mut self) -> Sent {
        self.process().in_flight += 1;
        self.sent(false)
    }

    /// Returns a request of the acting process that is sent now.
    pub(super) fn sent(&self, is_probe: bool) -> Sent {
        Sent {
            who: self.who,
            at: self.now,
            is_probe,
        }
    }

    /// Ends a request with a success that describes a quota or none.
    pub(super) fn answer(&mut self, sent: Sent, reading: Option<Reading>) {
        self.respond(sent, 200, reading, None);
    }

    /// Ends a request with a response. `wait` is the `Retry-After` of a 429.
    pub(super) fn respond(
        &mut self,
        sent: Sent,
        status: u16,
        reading: Option<Reading>,
        wait: Option<i64>,
    ) {
        let head = self.head(status, reading, wait);
        self.end(sent, Some(head));
    }

    /// Returns the head of a response that is written now.
    pub(super) fn head(
        &self,
        status: u16,
        reading: Option<Reading>,
        wait: Option<i64>,
    ) -> ResponseHead {
        let now = service(0).plus(self.now.0);
        ResponseHead {
            status,
            date: Some(now),
            wall: now,
            reading,
            retry_after: wait.map(|seconds| seconds * SECOND),
        }
    }

    /// Ends a request without a response.
    pub(super) fn lose(&mut self, sent: Sent) {
        self.end(sent, None);
    }

    pub(super) fn end(&mut self, sent: Sent, head: Option<ResponseHead>) {
        let acting = std::mem::replace(&mut self.who, sent.who);
        let outcome = Outcome {
            sent_ago: self.now.since(sent.at),
            ended_ago: 0,
            is_probe: sent.is_probe,
            head,
        };
        let process = self.process();
        process.in_flight -= 1;
        process.probes -= u64::from(sent.is_probe);
        let report = Report {
            outcomes: vec![outcome],
            ..self.report(0)
        };
        self.exchange(&report);
        self.process().ended += 1;
        self.who = acting;
    }
}

/// What the acting process sees.
impl Story {
    /// Returns how many requests it may send at once.
    pub(super) fn may_send(&self) -> u64 {
        self.clone().ask(10_000).granted
    }

    /// Returns why a call waits, if it does.
    pub(super) fn waits_for(&self) -> Option<WaitReason> {
        let answer = self.clone().ask(1);
        (answer.granted == 0).then_some(answer.pause.reason())
    }

    /// Returns the second at which the block ends, and why there is one.
    pub(super) fn block(&self) -> Option<(i64, BlockReason)> {
        let pause = self.clone().ask(1).pause;
        let end = self.now.0 + pause.length();
        pause
            .blocked(0)
            .map(|blocked| (end / SECOND, blocked.reason))
    }

    pub(super) fn blocked_until(&self) -> Option<i64> {
        self.block().map(|(until, _)| until)
    }

    pub(super) fn limits(&self) -> RateLimits {
        self.ledger.clone().snapshot(&self.report(0), self.now)
    }

    /// Returns the limit of each known window and what is left of it, the smallest limit first.
    pub(super) fn windows(&self) -> Vec<(u64, u64)> {
        let limits = self.limits();
        let windows = limits.windows.iter().chain(&limits.ended);
        let mut windows: Vec<_> = windows
            .map(|shown| (shown.limit, shown.remaining))
            .collect();
        windows.sort_unstable();
        windows
    }

    /// Returns how far the ledger believes the service's clock to be ahead of the truth, in microseconds.
    pub(super) fn clock_error(&self) -> i64 {
        let shown = self.limits().service_time.unwrap();
        ServiceTime::from(shown).after(service(0).plus(self.now.0))
    }
}
