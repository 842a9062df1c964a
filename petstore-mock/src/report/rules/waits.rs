//! `told-to-wait` and `retry-after`: requests that came before the end of a wait that a response
//! had asked for.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use crate::{
    exchange::Moment,
    report::{
        breach::{Breach, Ruling, Series},
        facts::Facts,
        rule::Rule,
        rules::doubt::{Doubt, is_soon},
        text::{clock_time, seconds},
    },
};

/// The maximum number of remembered waits for single requests, and of responses in one wait.
const MAX_WAITS: usize = 64;
const MAX_ASKED: usize = 64;
/// The number of early requests that are excused in one wait, because workers may learn of the wait
/// one by one. So many requests do not cause a ban yet.
const MAX_EXCUSED: u32 = 10;
/// The processes of one program start within this time.
const START: Duration = Duration::from_secs(1);

/// The waits of a client.
#[derive(Debug, Default)]
pub(in crate::report) struct Waits {
    /// The wait after a 429. It applies to all requests with the key.
    of_key: Option<Wait>,
    /// The waits after 503s. Each applies to the same request only.
    of_requests: VecDeque<Wait>,
}

/// Whether a request came before the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Timing {
    /// There was no wait, or it had ended.
    InTime,
    /// The request came early, but its worker may not have known of the wait.
    Excused,
    Early,
}

/// A period in which a client should wait.
#[derive(Debug)]
struct Wait {
    /// The responses that ask for it. Each stands for one worker that has not come back yet.
    asked: VecDeque<Arc<Facts>>,
    /// When the first response was read.
    began: Moment,
    /// The number of excused early requests.
    excused: u32,
    /// The number of the first early request.
    first_offence: Option<u64>,
    /// The early requests of the first moments.
    doubt: Doubt,
}

impl Waits {
    /// Whether no request is remembered.
    pub(in crate::report) fn is_empty(&self) -> bool {
        self.of_key.is_none() && self.of_requests.is_empty()
    }

    /// Returns the number of remembered exchanges.
    pub(in crate::report) fn remembered(&self) -> usize {
        let waits = self.of_requests.iter().chain(&self.of_key);
        waits.map(Wait::remembered).sum()
    }

    /// Judges a request, and remembers the wait that its response asks for. `ban` describes the ban
    /// that it caused, if any.
    pub(in crate::report) fn judge(
        &mut self,
        request: &Arc<Facts>,
        ban: Option<&str>,
        found: &mut Ruling,
    ) -> Timing {
        self.resolve_doubts(request, found);
        let mut timing = Timing::InTime;
        if let Some(wait) = &mut self.of_key {
            timing = wait.judge(request);
            if timing == Timing::Early {
                let mut breach = wait.breach(request);
                breach.ban = ban.map(str::to_owned);
                wait.add(Rule::ToldToWait, breach, request, found);
                if wait.doubt.is_some() {
                    timing = Timing::Excused;
                }
            }
            if wait.asked.is_empty() {
                self.of_key = None;
            }
        }
        let place = self.place_of(request);
        if let Some(wait) = place.map(|place| &mut self.of_requests[place]) {
            if wait.judge(request) == Timing::Early {
                let breach = wait.breach(request);
                wait.add(Rule::RetryAfter, breach, request, found);
            }
            self.of_requests.retain(|wait| !wait.asked.is_empty());
        }
        self.remember(request);
        timing
    }

    /// Decides about the early requests of the first moments of each wait, as soon as a request
    /// shows whether the client is one sender.
    fn resolve_doubts(&mut self, request: &Facts, found: &mut Ruling) {
        if let Some(wait) = &mut self.of_key {
            wait.resolve_doubt(Rule::ToldToWait, request, found);
        }
        for wait in &mut self.of_requests {
            wait.resolve_doubt(Rule::RetryAfter, request, found);
        }
    }

    /// Adds what is found if no further request follows.
    pub(in crate::report) fn complete(&self, found: &mut Ruling) {
        if let Some(wait) = &self.of_key {
            wait.doubt.complete(Rule::ToldToWait, found);
        }
        for wait in &self.of_requests {
            wait.doubt.complete(Rule::RetryAfter, found);
        }
    }

    /// Returns how long until [`Self::complete`] is certain, if it is not yet.
    pub(in crate::report) fn undecided(&self, now: &Moment) -> Option<Duration> {
        let waits = self.of_requests.iter().chain(&self.of_key);
        let left = waits.map(|wait| wait.doubt.undecided(&wait.began, now));
        left.max().filter(|left| !left.is_zero())
    }

    fn place_of(&self, request: &Facts) -> Option<usize> {
        let is_same = |wait: &Wait| wait.asked.front().is_some_and(|it| it.is_same_as(request));
        self.of_requests.iter().position(is_same)
    }

    fn remember(&mut self, request: &Arc<Facts>) {
        if request.retry_after().is_none() {
            return;
        }
        match request.status() {
            Some(429) => match &mut self.of_key {
                Some(wait) => wait.ask(request),
                None => self.of_key = Some(Wait::new(request)),
            },
            Some(503) => match self.place_of(request) {
                Some(place) => self.of_requests[place].ask(request),
                None => {
                    if self.of_requests.len() == MAX_WAITS {
                        self.of_requests.pop_front();
                    }
                    self.of_requests.push_back(Wait::new(request));
                }
            },
            _ => {}
        }
    }
}

impl Wait {
    fn new(asked: &Arc<Facts>) -> Self {
        Self {
            asked: VecDeque::from([Arc::clone(asked)]),
            began: *asked.ended(),
            excused: 0,
            first_offence: None,
            doubt: Doubt::default(),
        }
    }

    /// Returns the number of remembered exchanges.
    fn remembered(&self) -> usize {
        self.asked.len() + self.doubt.remembered()
    }

    /// Adds a response that asks for a wait. If the waits of all earlier ones have ended, a new
    /// period begins.
    fn ask(&mut self, response: &Arc<Facts>) {
        let goes_on = |asked: &Arc<Facts>| asked.asks_to_wait_at(response.arrived());
        if !self.asked.iter().any(goes_on) {
            self.began = *response.ended();
            self.excused = 0;
            self.first_offence = None;
        }
        if self.asked.len() == MAX_ASKED {
            self.asked.pop_front();
        }
        self.asked.push_back(Arc::clone(response));
    }

    fn judge(&mut self, request: &Facts) -> Timing {
        if request.arrived().is_before(&self.began) || self.is_kept_by(request) {
            return Timing::InTime;
        }
        if self.knowing(request).is_some() {
            return Timing::Early;
        }
        if !self.has_reacted(request) {
            return Timing::Excused;
        }
        if self.excused == MAX_EXCUSED {
            return Timing::Early;
        }
        self.excused += 1;
        Timing::Excused
    }

    /// Whether a request came in the first moments of the wait.
    fn is_soon(&self, request: &Facts) -> bool {
        is_soon(request, &self.began)
    }

    /// Adds the breach of an early request. It stays doubtful if the request came in the first
    /// moments, and only a few did.
    fn add(&mut self, rule: Rule, breach: Breach, request: &Facts, found: &mut Ruling) {
        if self.is_soon(request) {
            self.doubt.keep(breach);
            self.doubt.settle(MAX_EXCUSED, rule, found);
        } else {
            found.add(rule, breach);
        }
    }

    /// Decides about the doubtful requests.
    fn resolve_doubt(&mut self, rule: Rule, request: &Facts, found: &mut Ruling) {
        if self.doubt.resolve(&self.began, rule, request, found) {
            self.first_offence = None;
        }
    }

    /// Whether the request may come from a worker that has waited as long as it was asked to. If
    /// so, removes the response for which this worker stands.
    fn is_kept_by(&mut self, request: &Facts) -> bool {
        let has_ended = |asked: &Arc<Facts>| !asked.asks_to_wait_at(request.arrived());
        match self.asked.iter().position(has_ended) {
            Some(place) => self.asked.remove(place).is_some(),
            None => false,
        }
    }

    /// Whether the request was certainly sent after the wait began. That is always so if one sender
    /// sends one request after the other.
    fn has_reacted(&self, request: &Facts) -> bool {
        request.is_in_sequence() || !self.is_soon(request)
    }

    /// Returns the response that the sender of a request must know. There must be only one sender.
    /// And the response came on the same connection, or it answered the same request a while ago.
    fn knowing(&self, request: &Facts) -> Option<&Arc<Facts>> {
        if request.may_be_several() {
            return None;
        }
        let has_started = request.arrived().gap_since(&self.began) >= START;
        let has_reacted = self.has_reacted(request);
        self.asked.iter().rev().find(|asked| {
            let is_on_connection = asked.connection() == request.connection() && has_reacted;
            is_on_connection || has_started && asked.is_same_as(request)
        })
    }

    /// Returns the breach of an early request. All early requests of one wait are one breach.
    fn breach(&mut self, request: &Arc<Facts>) -> Breach {
        if let Some(first) = self.first_offence {
            return Breach::by_one(first, String::new(), request);
        }
        self.first_offence = Some(request.number());
        let knowing = self.knowing(request);
        let Some(asked) = knowing.or(self.asked.back()) else {
            return Breach::by_one(request.number(), String::new(), request);
        };
        let now = request.arrived().at();
        let until = asked.wait_until().unwrap_or(now);
        let early = until.saturating_sub(now);
        let mut text = format!("{} arrived {} too early", request.name(), seconds(early));
        if knowing.is_none() {
            text += &format!(
                ", after {} other early requests that were let go",
                self.excused
            );
        }
        let mut series = Series::after(asked);
        series.push(request);
        let mut breach = Breach::new(request.number(), text, series);
        breach.told = Some(told(asked, until, now));
        breach.by = Some(early);
        breach
    }
}

/// Describes the wait that a response asks for.
fn told(asked: &Facts, until: Duration, now: Duration) -> String {
    let banned = if asked.is_banned() {
        "the key is banned, "
    } else {
        ""
    };
    format!(
        "wait until {} ({banned}{}, Retry-After: {}, #{})",
        clock_time(until, now),
        asked.status().unwrap_or_default(),
        asked.retry_after().unwrap_or_default(),
        asked.number(),
    )
}
