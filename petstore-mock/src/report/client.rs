//! The state of a client: whether it may be several senders, its last requests, and the state of
//! the rules.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{
    breach::Ruling,
    facts::{Facts, is_close},
    finding::ReportedClient,
    rule::Rule,
    rules::{Ban, Hygiene, KnownQuota, Posts, Refusals, Retries, Waits},
};
use crate::exchange::{Moment, Record};

/// For this long a client counts as possibly several senders, after two of its connections were
/// open, or two of its requests in flight, at the same time.
const SEVERAL_MEMORY: Duration = Duration::from_secs(60);
/// The number of requests that are shown as context before a breach.
const SHOWN_BEFORE: usize = 3;

/// One client.
#[derive(Debug, Default)]
pub(super) struct Client {
    reported: ReportedClient,
    /// The index of its scope.
    scope: usize,
    /// The last requests, as context before a breach.
    recent: VecDeque<Arc<Facts>>,
    in_flight: u32,
    /// The connection of its last request, unless that request closed it.
    connection: Option<u64>,
    last_seen_as_several: Option<Moment>,
    /// The `order` of its last arrival.
    last_arrival: u64,
    boundary: u64,
    rules: Rules,
}

/// The state of the rules since the last boundary.
#[derive(Debug, Default)]
struct Rules {
    waits: Waits,
    retries: Retries,
    posts: Posts,
    refusals: Refusals,
    quota: KnownQuota,
    hygiene: Hygiene,
}

impl Rules {
    /// Adds what the rules find if no further request follows.
    fn complete(&self, found: &mut Ruling) {
        self.waits.complete(found);
        self.retries.complete(found);
        self.posts.complete(found);
    }
}

impl Client {
    pub(super) fn new(reported: ReportedClient, scope: usize) -> Self {
        Self {
            reported,
            scope,
            ..Self::default()
        }
    }

    pub(super) const fn reported(&self) -> &ReportedClient {
        &self.reported
    }

    pub(super) const fn scope(&self) -> usize {
        self.scope
    }

    pub(super) const fn last_arrival(&self) -> u64 {
        self.last_arrival
    }

    pub(super) const fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    pub(super) const fn recent(&self) -> &VecDeque<Arc<Facts>> {
        &self.recent
    }

    /// Records an arrival. Returns whether the client may be several senders, and the other connection
    /// if that is the only sign of it. `is_open` says whether a connection is open.
    pub(super) fn arrived(
        &mut self,
        record: &Record,
        is_open: impl Fn(u64) -> bool,
    ) -> (bool, Option<u64>) {
        let (now, caller) = (&record.arrived, &record.caller);
        self.in_flight += 1;
        self.last_arrival = now.order();
        let last = self.connection.replace(caller.connection);
        let other = last.filter(|last| *last != caller.connection && is_open(*last));
        let seen = self.last_seen_as_several;
        let was_several = seen.is_some_and(|seen| now.gap_since(&seen) < SEVERAL_MEMORY);
        let is_overlapping = self.in_flight > 1 || caller.is_overlapping;
        if is_overlapping || (was_several && other.is_some()) {
            self.last_seen_as_several = Some(*now);
        }
        match was_several || is_overlapping {
            true => (true, None),
            false => (false, other),
        }
    }

    /// Records that two connections were open at this moment.
    pub(super) const fn had_two_connections(&mut self, at: Moment) {
        self.last_seen_as_several = Some(at);
    }

    /// Lets the rules judge a completed exchange. `ban` is the ban that it caused, if any.
    pub(super) fn ended(
        &mut self,
        record: &Record,
        request: &Arc<Facts>,
        ban: Option<&Ban>,
        found: &mut Ruling,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if request.closes_connection() || is_close(record.fields.get("connection")) {
            self.connection = None;
        }
        let rules = &mut self.rules;
        let timing = rules.waits.judge(request, ban.map(Ban::text), found);
        rules.quota.judge(request, timing, ban, found);
        rules.retries.judge(request, found);
        rules.posts.judge(record, request, found);
        rules.refusals.judge(request, found);
        rules.hygiene.judge(record, request, found);
        if self.reported.user_agent.is_none() {
            let text = |_: &Facts| "sent without a User-Agent".to_owned();
            found.note(Rule::UserAgent, request, text);
        }
    }

    /// Adds a judged request to the context of later breaches.
    pub(super) fn remember(&mut self, request: Arc<Facts>) {
        if self.recent.len() == SHOWN_BEFORE {
            self.recent.pop_front();
        }
        self.recent.push_back(request);
    }

    /// Returns the number of requests that the rules remember, at most.
    pub(super) fn remembered(&self) -> usize {
        let rules = &self.rules;
        rules.waits.remembered() + rules.retries.remembered() + rules.posts.remembered()
    }

    /// Whether a rule compares a successful request with earlier ones.
    pub(super) fn compares_requests(&self) -> bool {
        let rules = &self.rules;
        !(rules.waits.is_empty() && rules.retries.is_empty() && rules.posts.is_empty())
    }

    /// At a new boundary, judges the open series, and starts the rules with new state.
    pub(super) fn pass_boundary(&mut self, boundary: u64, found: &mut Ruling) {
        if self.boundary != boundary {
            self.boundary = boundary;
            self.rules.complete(found);
            self.rules = Rules::default();
        }
    }

    /// Returns what the rules find if no further request follows.
    pub(super) fn open_breaches(&self) -> Ruling {
        let mut found = Ruling::default();
        self.rules.complete(&mut found);
        found
    }

    /// Returns how long until [`Self::open_breaches`] is certain, if it is not yet. After a
    /// boundary, it is.
    pub(super) fn undecided(&self, now: &Moment, boundary: u64) -> Option<Duration> {
        if self.boundary == boundary {
            let rules = &self.rules;
            let left = [
                rules.waits.undecided(now),
                rules.retries.undecided(now),
                rules.posts.undecided(now),
            ];
            left.into_iter().max().flatten()
        } else {
            None
        }
    }

    /// Clears everything except the requests in flight.
    pub(super) fn forget(&mut self) {
        self.recent.clear();
        self.rules = Rules::default();
    }
}
