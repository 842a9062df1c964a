//! The rules about the waits and the repeats of one key. What they remember ends at a boundary.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{
    facts::{Facts, identity, identity_of_bytes},
    found::{Findings, Found, KeyName, Repeats, What},
    rule::Rule,
};
use crate::exchange::{Moment, Record};

/// A shorter pause is none. A loop of curl pauses for 7 ms and more, the fastest usual back-off for 10.
const QUICK: Duration = Duration::from_millis(8);
/// So many quick repeats, one after the other, are needed from each sender.
const MIN_QUICK: u64 = 3;
/// The number of different requests of a key that are remembered.
const MAX_ROWS: usize = 64;

/// Where the rules put what they find about a key.
pub(super) struct Finder<'a> {
    findings: &'a mut Findings,
    key: &'a Arc<KeyName>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(findings: &'a mut Findings, key: &'a Arc<KeyName>) -> Self {
        Self { findings, key }
    }

    fn open(&mut self, rule: Rule, what: What, needed: u64, cause: &Arc<Facts>) -> u64 {
        let needed = needed * u64::from(self.key.senders());
        let found = Found::new(rule, what, self.key, needed);
        self.findings.open(found.after(cause))
    }

    fn add(&mut self, finding: u64, offence: &Arc<Facts>) {
        if let Some(found) = self.findings.get(finding) {
            found.add(offence);
        }
    }
}

/// What is remembered of the requests of a key.
#[derive(Default)]
pub(super) struct History {
    /// The wait of the key after a 429.
    wait: Option<Wait>,
    /// The requests that failed. The ones that came last are at the end.
    rows: VecDeque<Row>,
    /// The last requests that were answered 201. Equal pets are wanted then.
    created: VecDeque<u64>,
}

impl History {
    /// Judges an exchange at its end, and remembers it.
    pub(super) fn judge(&mut self, record: &Record, facts: &Arc<Facts>, finder: &mut Finder<'_>) {
        let is_refused = facts.status() == Some(429);
        Wait::judge(&mut self.wait, Rule::ToldToWait, facts, is_refused, finder);
        self.judge_row(record, facts, finder);
        for row in &mut self.rows {
            row.look(facts);
        }
        if facts.has_created() {
            if self.created.len() == MAX_ROWS {
                self.created.pop_front();
            }
            self.created.push_back(identity_of_bytes(record));
        }
    }

    fn judge_row(&mut self, record: &Record, facts: &Arc<Facts>, finder: &mut Finder<'_>) {
        // Nearly every request ends here.
        if self.rows.is_empty() && !facts.has_failed() {
            return;
        }
        let identity = identity(record);
        let place = self.rows.iter().position(|row| row.identity == identity);
        let known = place.and_then(|place| self.rows.remove(place));
        let mut row = known.unwrap_or_else(|| Row::new(identity));
        row.judge(facts, finder);
        let was_created = || self.created.contains(&identity_of_bytes(record));
        if facts.is_unknown_post() && !was_created() {
            row.post.unknown.get_or_insert_with(|| Arc::clone(facts));
        }
        if row.is_needed() {
            if self.rows.len() == MAX_ROWS {
                self.rows.pop_front();
            }
            self.rows.push_back(row);
        }
    }
}

/// A period in which a client should wait.
struct Wait {
    /// The exchange that named it first.
    first: Arc<Facts>,
    /// The earliest end that a response named.
    ends: Moment,
    finding: Option<u64>,
}

impl Wait {
    /// Judges whether an exchange came in a wait, and begins the wait that it names, if it may.
    fn judge(
        wait: &mut Option<Self>,
        rule: Rule,
        facts: &Arc<Facts>,
        may_begin: bool,
        finder: &mut Finder<'_>,
    ) {
        let now = facts.arrived();
        if let Some(wait) = wait
            && wait.first.ended().is_before(now)
            && !now.has_reached(&wait.ends)
        {
            let open = || finder.open(rule, What::Early, 1, &wait.first);
            let finding = *wait.finding.get_or_insert_with(open);
            finder.add(finding, facts);
        }
        let ends = facts.told().and_then(|told| told.ends());
        let Some(ends) = ends.filter(|_| may_begin) else {
            return;
        };
        match wait {
            Some(wait) if !now.has_reached(&wait.ends) => {
                wait.ends = wait.ends.earlier_of_each(ends);
            }
            _ => {
                *wait = Some(Self {
                    first: Arc::clone(facts),
                    ends: *ends,
                    finding: None,
                });
            }
        }
    }
}

/// The same request, as often as it came.
struct Row {
    identity: u64,
    /// Its last exchange, if that failed.
    failure: Option<Arc<Facts>>,
    retries: Retries,
    /// The wait after a 503.
    wait: Option<Wait>,
    post: Post,
}

/// The repeats of a request that failed, until it succeeds or is told to wait.
#[derive(Default)]
struct Retries {
    repeats: Repeats,
    /// The quick repeats at the end, after the failure before them, until there is a finding.
    run: Vec<Arc<Facts>>,
    finding: Option<u64>,
}

/// What became of a `POST`.
#[derive(Default)]
struct Post {
    /// The first exchange whose outcome the client cannot know.
    unknown: Option<Arc<Facts>>,
    finding: Option<u64>,
}

impl Row {
    fn new(identity: u64) -> Self {
        Self {
            identity,
            failure: None,
            retries: Retries::default(),
            wait: None,
            post: Post::default(),
        }
    }

    fn is_needed(&self) -> bool {
        self.failure.is_some() || self.wait.is_some() || self.post.unknown.is_some()
    }

    fn judge(&mut self, facts: &Arc<Facts>, finder: &mut Finder<'_>) {
        let is_unavailable = facts.status() == Some(503);
        Wait::judge(
            &mut self.wait,
            Rule::RetryAfter,
            facts,
            is_unavailable,
            finder,
        );
        if let Some(failure) = &self.failure
            && failure.told().is_none()
        {
            self.retries.judge(failure, facts, finder);
        }
        self.post.judge(facts, finder);
        self.failure = facts.has_failed().then(|| Arc::clone(facts));
        if !facts.has_failed() || facts.told().is_some() {
            self.retries = Retries::default();
        }
    }

    /// Forgets the `POST` if the client looked what became of it.
    fn look(&mut self, facts: &Facts) {
        let unknown = self.post.unknown.as_ref();
        if unknown.is_some_and(|post| facts.is_look_after(post)) {
            self.post = Post::default();
        }
    }
}

impl Retries {
    /// Judges the repeat of a failure.
    fn judge(&mut self, failure: &Arc<Facts>, facts: &Arc<Facts>, finder: &mut Finder<'_>) {
        let pause = failure.pause_before(facts);
        if pause >= QUICK {
            self.repeats.add_slow();
            self.run.clear();
        } else {
            self.repeats.add_quick(pause);
            self.judge_quick(failure, facts, finder);
        }
        if let Some(found) = self.finding.and_then(|it| finder.findings.get(it)) {
            found.set_repeats(self.repeats);
        }
    }

    fn judge_quick(&mut self, failure: &Arc<Facts>, facts: &Arc<Facts>, finder: &mut Finder<'_>) {
        if let Some(finding) = self.finding {
            finder.add(finding, facts);
            return;
        }
        if self.run.is_empty() {
            self.run.push(Arc::clone(failure));
        }
        self.run.push(Arc::clone(facts));
        if self.repeats.run() < MIN_QUICK {
            return;
        }
        let what = What::Repeats(self.repeats);
        let finding = finder.open(Rule::BackOff, what, MIN_QUICK, &self.run[0]);
        for repeat in self.run.drain(..).skip(1) {
            finder.add(finding, &repeat);
        }
        self.finding = Some(finding);
    }
}

impl Post {
    fn judge(&mut self, facts: &Arc<Facts>, finder: &mut Finder<'_>) {
        if let Some(unknown) = &self.unknown
            && unknown.ended().is_before(facts.arrived())
        {
            let open = || finder.open(Rule::RepeatedPost, What::Post, 1, unknown);
            let finding = *self.finding.get_or_insert_with(open);
            finder.add(finding, facts);
        }
        if facts.has_created() {
            *self = Self::default();
        }
    }
}
