//! Breaches of rules, as the rules find them: the requests, and the sentence about them.

use std::{collections::VecDeque, sync::Arc, time::Duration, vec::Drain};

use super::{facts::Facts, rule::Rule};

/// The number of requests of a series that are kept, at its beginning and at its end.
const KEPT_FIRST: usize = 8;
const KEPT_LAST: usize = 4;

/// A request that broke a rule, or led to it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    facts: Arc<Facts>,
    /// The request before it in the series, and the time since the end of that request.
    after: Option<(u64, Duration)>,
}

/// Requests that broke a rule together. The first and the last ones are kept, and all are counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// The request whose response makes the later ones a breach.
    cause: Option<Arc<Facts>>,
    first: Vec<Kept>,
    last: VecDeque<Kept>,
    count: u64,
    /// Whether only the first and the last request are kept, because all are alike.
    is_brief: bool,
}

impl Series {
    /// Begins a series after its cause: the request whose response makes the later ones a breach.
    pub(super) fn after(cause: &Arc<Facts>) -> Self {
        Self {
            cause: Some(Arc::clone(cause)),
            ..Self::default()
        }
    }

    fn brief() -> Self {
        Self {
            is_brief: true,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, request: &Arc<Facts>) {
        let before = self.last_kept().or(self.cause.as_ref());
        let after = before.and_then(|before| {
            let is_over = before.ended().is_before(request.arrived());
            is_over.then(|| (before.number(), request.arrived().gap_since(before.ended())))
        });
        let kept = Kept {
            facts: Arc::clone(request),
            after,
        };
        let (most_first, most_last) = if self.is_brief {
            (1, 1)
        } else {
            (KEPT_FIRST, KEPT_LAST)
        };
        self.count += 1;
        if self.first.len() < most_first {
            self.first.push(kept);
            return;
        }
        if self.last.len() == most_last {
            self.last.pop_front();
        }
        self.last.push_back(kept);
    }

    /// Counts requests that are not kept and that came before the last ones.
    pub(super) fn count_unkept(&mut self, requests: u64) {
        self.count += requests;
    }

    /// Appends a later part of the series.
    fn append(&mut self, later: &Self) {
        for kept in later.first.iter().chain(&later.last) {
            self.push(&kept.facts);
        }
        self.count += later.omitted();
    }

    fn last_kept(&self) -> Option<&Arc<Facts>> {
        let last = self.last.back().or(self.first.last())?;
        Some(&last.facts)
    }

    pub(super) const fn cause(&self) -> Option<&Arc<Facts>> {
        self.cause.as_ref()
    }

    /// Returns the number of requests, without the cause.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of kept requests, with the cause.
    pub(super) fn remembered(&self) -> usize {
        self.first.len() + self.last.len() + usize::from(self.cause.is_some())
    }

    /// Returns the number of requests that were not kept.
    pub(super) fn omitted(&self) -> u64 {
        self.count - self.first.len() as u64 - self.last.len() as u64
    }

    /// Returns the kept requests before and after the omitted ones.
    pub(super) fn kept(&self) -> (&[Kept], &VecDeque<Kept>) {
        (&self.first, &self.last)
    }
}

impl Kept {
    pub(super) const fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// Returns the number of the request before it in the series, and the time since the end of
    /// that request; `None` if that had not ended.
    pub(super) const fn after(&self) -> Option<(u64, Duration)> {
        self.after
    }
}

/// A breach of a rule. A breach with the same id continues an earlier one.
#[derive(Clone, Debug)]
pub(super) struct Breach {
    id: u64,
    series: Series,
    /// What happened, in one sentence.
    pub(super) text: String,
    /// Whether the sentence replaces that of the breach that it continues.
    replaces_text: bool,
    /// What the service told the client, and the client ignored.
    pub(super) told: Option<String>,
    /// How much too early the first request arrived. For some rules, how long after the end of the
    /// cause.
    pub(super) by: Option<Duration>,
    /// The ids of pets that a repeated request created.
    pub(super) added: Vec<i64>,
    /// The ban that the requests caused.
    pub(super) ban: Option<String>,
}

impl Breach {
    pub(super) fn new(id: u64, text: String, series: Series) -> Self {
        Self {
            id,
            series,
            text,
            replaces_text: false,
            told: None,
            by: None,
            added: Vec::new(),
            ban: None,
        }
    }

    /// Creates a breach by one request.
    pub(super) fn by_one(id: u64, text: String, request: &Arc<Facts>) -> Self {
        let mut series = Series::default();
        series.push(request);
        Self::new(id, text, series)
    }

    /// Creates a part of a known breach: one more request, and the sentence about all of them.
    pub(super) fn continued(id: u64, text: String, request: &Arc<Facts>) -> Self {
        Self {
            replaces_text: true,
            ..Self::by_one(id, text, request)
        }
    }

    /// Creates a breach that later ones continue. Its first and last requests are evidence enough.
    pub(super) fn brief(id: u64, text: String, request: &Arc<Facts>) -> Self {
        let mut series = Series::brief();
        series.push(request);
        Self::new(id, text, series)
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    pub(super) const fn series(&self) -> &Series {
        &self.series
    }

    /// Continues the breach with one more request.
    pub(super) fn push(&mut self, request: &Arc<Facts>) {
        self.series.push(request);
    }

    /// Continues the breach.
    pub(super) fn extend(&mut self, later: Self) {
        self.series.append(&later.series);
        if later.replaces_text {
            self.text = later.text;
        }
        self.ban = self.ban.take().or(later.ban);
    }
}

/// A request that breaks a rule that has only one breach for each client. The sentence is written
/// only for the first such request.
#[derive(Debug)]
pub(super) struct Note {
    rule: Rule,
    request: Arc<Facts>,
    describe: fn(&Facts) -> String,
}

impl Note {
    pub(super) const fn rule(&self) -> Rule {
        self.rule
    }

    pub(super) const fn request(&self) -> &Arc<Facts> {
        &self.request
    }

    /// Returns the breach that begins with the request.
    pub(super) fn breach(&self) -> Breach {
        Breach::brief(0, (self.describe)(&self.request), &self.request)
    }
}

/// What the rules find in one exchange.
#[derive(Debug, Default)]
pub(super) struct Ruling {
    breaches: Vec<(Rule, Breach)>,
    notes: Vec<Note>,
}

impl Ruling {
    pub(super) fn add(&mut self, rule: Rule, breach: Breach) {
        self.breaches.push((rule, breach));
    }

    /// Adds a request to a rule's only breach by the client. `describe` returns the sentence, if
    /// this is the first such request.
    pub(super) fn note(
        &mut self,
        rule: Rule,
        request: &Arc<Facts>,
        describe: fn(&Facts) -> String,
    ) {
        let request = Arc::clone(request);
        self.notes.push(Note {
            rule,
            request,
            describe,
        });
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.breaches.is_empty() && self.notes.is_empty()
    }

    /// Drains the breaches. The list keeps its allocation for the next exchange.
    pub(super) fn take_breaches(&mut self) -> Drain<'_, (Rule, Breach)> {
        self.breaches.drain(..)
    }

    /// Drains the notes. The list keeps its allocation for the next exchange.
    pub(super) fn take_notes(&mut self) -> Drain<'_, Note> {
        self.notes.drain(..)
    }
}
