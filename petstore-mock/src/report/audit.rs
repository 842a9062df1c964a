//! Judges each exchange at its end, and keeps the findings until they are cleared.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    facts::Facts,
    found::{Findings, Found, KeyName, What},
    rule::{Rule, Severities},
    rules::{Finder, History},
    verdict::{Answers, Report},
};
use crate::{
    exchange::{KeyFlaw, Moment, Record},
    operation::Operation,
};

/// The maximum number of texts about single requests. Each query parameter with a key has one.
const MAX_SINGLE: usize = 64;

/// What the report knows of the exchanges so far.
#[derive(Default)]
pub(crate) struct Audit {
    /// By number; `None` for all requests without a valid key.
    keys: BTreeMap<Option<u32>, KeyAudit>,
    answers: Answers,
    findings: Findings,
}

/// What is known of one key.
struct KeyAudit {
    name: Arc<KeyName>,
    requests: u64,
    /// The number of boundaries before the exchanges in the history.
    boundary: u64,
    history: History,
    /// The findings of requests that break a rule by themselves, by what they say.
    single: Vec<(Box<str>, u64)>,
}

impl Audit {
    pub(crate) fn new(severities: Severities) -> Self {
        Self {
            findings: Findings::new(severities),
            ..Self::default()
        }
    }

    /// Judges an exchange whose response was read or lost.
    pub(crate) fn ended(&mut self, record: &Record, ended: Moment) {
        let facts = Arc::new(Facts::new(record, ended));
        self.answers.add(&record.arrival, facts.status());
        let id = record.arrival.key.as_ref().map(|key| key.number());
        let key = self.keys.entry(id).or_insert_with(|| KeyAudit::new(record));
        key.count(record);
        if record.boundary > key.boundary {
            key.boundary = record.boundary;
            key.history = History::default();
        }
        key.judge_single(record, &facts, &mut self.findings);
        key.judge_ban(record.arrival.strikes, &facts, &mut self.findings);
        // A request before the last boundary has nothing to do with those after it.
        if record.boundary == key.boundary {
            let mut finder = Finder::new(&mut self.findings, &key.name);
            key.history.judge(record, &facts, &mut finder);
        }
    }

    /// Returns the report. `mask` masks the keys in a text.
    pub(crate) fn report(&self, mask: impl Fn(&str) -> String) -> Report {
        let mut keys = BTreeMap::new();
        for key in self.keys.values() {
            *keys.entry(key.name.as_str().to_owned()).or_default() += key.requests;
        }
        Report::new(
            self.answers,
            keys,
            self.findings.severities(),
            self.findings.list(&mask),
            self.findings.dropped(),
        )
    }

    /// Clears all findings and what is known of the keys.
    pub(crate) fn forget(&mut self) {
        self.findings.clear();
        self.keys.clear();
        self.answers = Answers::default();
    }
}

impl KeyAudit {
    fn new(record: &Record) -> Self {
        Self {
            name: Arc::new(KeyName::of(record)),
            requests: 0,
            boundary: record.boundary,
            history: History::default(),
            single: Vec::new(),
        }
    }

    /// Counts a request.
    fn count(&mut self, record: &Record) {
        self.requests += 1;
        if let Some(label) = &record.arrival.key
            && !self.name.is_still(label)
        {
            // What was judged by another number of senders ends.
            self.history = History::default();
            self.name = Arc::new(KeyName::of(record));
        }
    }

    /// Judges what a request does wrong by itself.
    fn judge_single(&mut self, record: &Record, facts: &Arc<Facts>, findings: &mut Findings) {
        let flaw = record.arrival.flaw.as_ref().map(|flaw| match flaw {
            KeyFlaw::InUrl(parameter) if parameter.is_empty() => {
                "a segment of the path is a key of this server".to_owned()
            }
            KeyFlaw::InUrl(parameter) => {
                format!("the query parameter `{parameter}` is a key of this server")
            }
            KeyFlaw::OtherScheme => {
                "`Authorization` has a key of this server, without `Bearer`".to_owned()
            }
            KeyFlaw::OtherHeader => "`X-Api-Key` has a key of this server".to_owned(),
        });
        if let Some(text) = flaw {
            self.add_single(Rule::Key, &text, facts, findings);
        }
        if facts.operation() == Some(Operation::GetPet) {
            let text = "GET /pets/{petId} will be removed on 5 December 2030";
            self.add_single(Rule::Deprecated, text, facts, findings);
        }
    }

    fn add_single(&mut self, rule: Rule, text: &str, facts: &Arc<Facts>, findings: &mut Findings) {
        let known = self.single.iter().find(|(known, _)| **known == *text);
        let number = match known {
            Some((_, number)) => *number,
            None if self.single.len() == MAX_SINGLE => return,
            None => {
                let what = What::Single(text.into());
                let number = findings.open(Found::new(rule, what, &self.name, 1));
                self.single.push((text.into(), number));
                number
            }
        };
        if let Some(found) = findings.get(number) {
            found.add(facts);
        }
    }

    /// Names the ban that a request caused, after so many early requests.
    fn judge_ban(&self, strikes: u32, facts: &Arc<Facts>, findings: &mut Findings) {
        if strikes > 0 && facts.is_banned() {
            let mut found = Found::new(Rule::ToldToWait, What::Ban, &self.name, 1);
            found.add(facts);
            found.set_offences(u64::from(strikes));
            findings.open(found);
        }
    }
}
