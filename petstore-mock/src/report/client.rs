//! The state of a client: its concurrency, its last requests, and the state of the rules.

use std::{collections::VecDeque, time::Duration};

use super::{
    finding::{ReportedClient, Ruling},
    hygiene::Hygiene,
    limits::KnownLimits,
    repeats::Repeats,
    request::{JudgedRequest, Role, push_bounded},
    retries::Retries,
    rule::Rule,
};
use crate::exchange::{Moment, Record};

/// The period for the maximum number of requests in flight.
const WIDTH_MEMORY: Duration = Duration::from_secs(60);
/// How long a client counts as parallel after two of its requests were in flight.
const PARALLEL_MEMORY: Duration = Duration::from_secs(1);
/// A connection that was opened earlier than this was not opened for its first request.
const OPENING: Duration = Duration::from_secs(1);
/// The number of remembered ends of requests.
const MAX_ENDS: usize = 64;
/// The number of requests that are shown as context before a breach.
const SHOWN_BEFORE: usize = 3;

/// One client.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) reported: ReportedClient,
    /// The index of its scope.
    pub(super) scope: usize,
    /// The last requests, as context before a breach.
    pub(super) recent: VecDeque<JudgedRequest>,
    pub(super) in_flight: u32,
    /// The numbers of requests in flight, with times, the highest first.
    widths: VecDeque<(Moment, u32)>,
    ends: VecDeque<u64>,
    last_overlap: Option<Moment>,
    pub(super) last_arrival: u64,
    boundary: u64,
    rules: ClientRules,
}

/// The state of the rules for one client since the last boundary.
#[derive(Debug, Default)]
struct ClientRules {
    limits: KnownLimits,
    retries: Retries,
    repeats: Repeats,
    hygiene: Hygiene,
}

impl Client {
    pub(super) fn new(reported: ReportedClient, scope: usize) -> Self {
        Self {
            reported,
            scope,
            ..Self::default()
        }
    }

    /// Records an arrival. Returns the maximum number of requests in flight in the last minute, and
    /// whether the client was parallel recently.
    pub(super) fn arrived(&mut self, record: &Record) -> (u32, bool) {
        let (arrived, opened) = (&record.arrived, &record.caller.opened);
        self.in_flight += 1;
        self.last_arrival = arrived.order;
        let mut width = self.in_flight;
        if record.caller.nth == 1 && arrived.gap_since(opened) < OPENING {
            // A client is parallel if it opens another connection while requests are in flight.
            let since = self
                .ends
                .iter()
                .rev()
                .take_while(|end| **end > opened.order)
                .count();
            width = width.saturating_add(u32::try_from(since).unwrap_or(u32::MAX));
        }
        while self.widths.back().is_some_and(|(_, other)| *other <= width) {
            self.widths.pop_back();
        }
        self.widths.push_back((*arrived, width));
        while self
            .widths
            .front()
            .is_some_and(|(at, _)| arrived.gap_since(at) > WIDTH_MEMORY)
        {
            self.widths.pop_front();
        }
        if self.in_flight > 1 {
            self.last_overlap = Some(*arrived);
        }
        let overlap = self.last_overlap.map(|at| arrived.gap_since(&at));
        let is_parallel = overlap.is_some_and(|ago| ago < PARALLEL_MEMORY);
        (
            self.widths.front().map_or(width, |(_, width)| *width),
            is_parallel,
        )
    }

    /// Lets the rules judge a completed exchange. Earlier boundaries reset their state.
    pub(super) fn judge(
        &mut self,
        record: &Record,
        request: &JudgedRequest,
        boundary: u64,
    ) -> Ruling {
        if boundary != self.boundary {
            self.boundary = boundary;
            self.rules = ClientRules::default();
        }
        let mut found = Ruling::default();
        self.rules.limits.judge(request, &mut found);
        self.rules
            .retries
            .judge(request, record.body.length > 0, &mut found);
        self.rules.repeats.judge(record, request, &mut found);
        self.rules.hygiene.judge(record, request, &mut found);
        if self.reported.user_agent.is_none() {
            found.note(Rule::UserAgent, request, "sent without a User-Agent");
        }
        found
    }

    /// Records the end of a judged exchange.
    pub(super) fn ended(&mut self, mut request: JudgedRequest) {
        if self.in_flight > 1 {
            self.last_overlap = Some(request.ended);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        // A client that gives up on a request often opens a connection before the server notices.
        if !request.has_left {
            push_bounded(&mut self.ends, request.ended.order, MAX_ENDS);
        }
        request.role = Role::Before;
        push_bounded(&mut self.recent, request, SHOWN_BEFORE);
    }

    /// Clears everything except the requests in flight.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
        self.rules = ClientRules::default();
    }
}
