//! What is remembered of one client: how it sends, what it sent last, and the state of the rules.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{
    finding::{EvidenceRequest, ReportedClient, Role},
    observed::ObservedExchange,
    rule::Rule,
    rules::{self, ClientNotes, ClientState, Judgement},
};
use crate::exchange::Moment;

/// For how long the number of requests in flight at once counts.
const WIDTH_MEMORY: Duration = Duration::from_secs(60);
/// For how long a client counts as parallel after two of its requests were in flight at once.
const PARALLEL_MEMORY: Duration = Duration::from_secs(1);
/// A connection opened longer ago than this was not opened for its first request.
const OPENING: Duration = Duration::from_secs(1);
/// How many ends of requests are remembered.
const MAX_ENDS: usize = 64;

/// One client.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) reported: ReportedClient,
    pub(super) scope: Arc<str>,
    /// The place of its scope among all.
    pub(super) scope_place: usize,
    /// The last requests, to be shown before a finding.
    pub(super) recent: VecDeque<EvidenceRequest>,
    /// The evidence to which the next requests are added, and how many.
    pub(super) open_evidence: Vec<(Rule, u64, u32)>,
    in_flight: u32,
    /// How many requests were in flight at once, and when: the highest first.
    widths: VecDeque<(Moment, u32)>,
    ends: VecDeque<u64>,
    last_overlap: Option<Moment>,
    last_arrival: u64,
    boundary: u64,
    state: ClientState,
    notes: ClientNotes,
}

impl Client {
    /// How many requests are shown before and after those concerned.
    const SHOWN_BEFORE: usize = 3;
    pub(super) const SHOWN_AFTER: u32 = 2;

    pub(super) fn new(reported: ReportedClient, scope: Arc<str>, scope_place: usize) -> Self {
        Self { reported, scope, scope_place, ..Self::default() }
    }

    /// Records an arrival; returns the most requests in flight at once in the last minute, and whether
    /// any were lately.
    pub(super) fn arrived(&mut self, arrived: &Moment, opened: &Moment, nth: u64) -> (u32, bool) {
        self.in_flight += 1;
        self.last_arrival = arrived.order;
        let mut width = self.in_flight;
        if nth == 1 && arrived.gap_since(opened) < OPENING {
            // Whoever opens another connection while requests are in flight sends in parallel.
            let since = self.ends.iter().rev().take_while(|end| **end > opened.order).count();
            width = width.saturating_add(u32::try_from(since).unwrap_or(u32::MAX));
        }
        while self.widths.back().is_some_and(|(_, other)| *other <= width) {
            self.widths.pop_back();
        }
        self.widths.push_back((*arrived, width));
        while self.widths.front().is_some_and(|(at, _)| arrived.gap_since(at) > WIDTH_MEMORY) {
            self.widths.pop_front();
        }
        if self.in_flight > 1 {
            self.last_overlap = Some(*arrived);
        }
        let overlap = self.last_overlap.map(|at| arrived.gap_since(&at));
        let is_parallel = overlap.is_some_and(|ago| ago < PARALLEL_MEMORY);
        (self.widths.front().map_or(width, |(_, width)| *width), is_parallel)
    }

    /// Lets the rules judge an exchange that ended.
    pub(super) fn judge(&mut self, exchange: &ObservedExchange, boundary: u64) -> Vec<Judgement> {
        if boundary != self.boundary {
            self.state = ClientState::default();
            self.boundary = boundary;
        }
        rules::judge(&mut self.state, &mut self.notes, exchange)
    }

    /// Records the end of an exchange, once it is judged.
    pub(super) fn ended(&mut self, exchange: &ObservedExchange) {
        if self.in_flight > 1 {
            self.last_overlap = Some(exchange.ended);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.ends.len() == MAX_ENDS {
            self.ends.pop_front();
        }
        self.ends.push_back(exchange.ended.order);
        if self.recent.len() == Self::SHOWN_BEFORE {
            self.recent.pop_front();
        }
        self.recent.push_back(exchange.as_evidence(Role::Before));
    }

    /// Forgets all but what is in flight.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
        self.open_evidence.clear();
        (self.state, self.notes) = (ClientState::default(), ClientNotes::default());
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    pub(super) const fn last_seen(&self) -> u64 {
        self.last_arrival
    }
}
