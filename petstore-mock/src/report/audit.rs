//! Judges each exchange at its end, and keeps the findings until they are cleared.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    facts::Facts,
    findings::Findings,
    found::{Found, KeyName, What},
    rule::{Rule, Severities},
    rules::{Finder, History},
    verdict::{Answers, JudgedKey, Report},
};
use crate::{
    exchange::{KeyFlaw, Moment, Record},
    operation::Operation,
};

/// The maximum number of keys and unknown credentials.
const MAX_KEYS: usize = 1_024;
/// The maximum number of early requests that a ban names.
const MAX_STRIKES: usize = 12;
/// The maximum number of texts about single requests. Each query parameter with a key has one.
const MAX_SINGLE: usize = 64;

/// What the report knows of the exchanges so far.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    keys: BTreeMap<KeyId, KeyAudit>,
    /// The open connections, with the key of the last request of each.
    connections: BTreeMap<u64, Option<KeyId>>,
    answers: Answers,
    findings: Findings,
}

/// A key, or unknown credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KeyId {
    Known(u32),
    Unknown(u64),
}

impl KeyId {
    fn of(record: &Record) -> Self {
        match &record.arrival.key {
            Some(key) => Self::Known(key.number()),
            None => Self::Unknown(record.arrival.credentials),
        }
    }
}

/// What is known of one key.
#[derive(Debug)]
struct KeyAudit {
    name: Arc<KeyName>,
    requests: u64,
    /// The `order` of its last exchange.
    last: u64,
    /// The number of boundaries before the exchanges in the history.
    boundary: u64,
    history: History,
    /// The last requests that came before the end of a `Retry-After`.
    strikes: VecDeque<Arc<Facts>>,
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

    /// Records that a connection was opened.
    pub(crate) fn connected(&mut self, connection: u64) {
        self.connections.insert(connection, None);
    }

    /// Records that a connection was closed.
    pub(crate) fn disconnected(&mut self, connection: u64) {
        self.connections.remove(&connection);
    }

    /// Judges an exchange whose response was read or lost.
    pub(crate) fn ended(&mut self, record: &Record, ended: Moment) {
        let facts = Arc::new(Facts::new(record, ended));
        self.answers.add(facts.status());
        let id = KeyId::of(record);
        if !self.keys.contains_key(&id) {
            self.make_room();
        }
        if let Some(last) = self.connections.get_mut(&record.caller.connection) {
            *last = Some(id);
        }
        let key = self.keys.entry(id).or_insert_with(|| KeyAudit::new(record));
        key.count(record, &ended);
        if record.boundary > key.boundary {
            key.boundary = record.boundary;
            key.history = History::default();
        }
        key.judge_single(record, &facts, &mut self.findings);
        key.judge_ban(record, &facts, &mut self.findings);
        // A request before the last boundary has nothing to do with those after it.
        if record.boundary == key.boundary {
            let open = &self.connections;
            let connections = || open.values().filter(|last| **last == Some(id)).count();
            let mut finder = Finder::new(&mut self.findings, &key.name, &connections);
            key.history.judge(record, &facts, &mut finder);
        }
    }

    /// Forgets the key that was not used for the longest time, if there are too many.
    fn make_room(&mut self) {
        if self.keys.len() < MAX_KEYS {
            return;
        }
        let oldest = self.keys.iter().min_by_key(|(_, key)| key.last);
        if let Some(id) = oldest.map(|(id, _)| *id) {
            self.keys.remove(&id);
        }
    }

    /// Returns the report. `mask` masks the keys in a text.
    pub(crate) fn report(&self, mask: impl Fn(&str) -> String) -> Report {
        let mut requests: Vec<(String, u64)> = Vec::new();
        for key in self.keys.values() {
            let name = key.name.as_str();
            match requests.iter_mut().find(|(known, _)| *known == name) {
                Some((_, requests)) => *requests += key.requests,
                None => requests.push((name.to_owned(), key.requests)),
            }
        }
        let keys = requests
            .into_iter()
            .map(|(name, requests)| JudgedKey::new(name, requests));
        Report::new(
            self.answers,
            keys.collect(),
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
            last: 0,
            boundary: record.boundary,
            history: History::default(),
            strikes: VecDeque::new(),
            single: Vec::new(),
        }
    }

    /// Counts a request.
    fn count(&mut self, record: &Record, ended: &Moment) {
        self.requests += 1;
        self.last = ended.order();
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
        match &record.arrival.flaw {
            Some(KeyFlaw::InUrl(parameter)) if parameter.is_empty() => {
                let text = "a segment of the path is a key of this server";
                self.add_single(Rule::Key, text, facts, findings);
            }
            Some(KeyFlaw::InUrl(parameter)) => {
                let text = format!("the query parameter `{parameter}` is a key of this server");
                self.add_single(Rule::Key, &text, facts, findings);
            }
            Some(KeyFlaw::OtherScheme) => {
                let text = "a key of this server was not sent after `Bearer `";
                self.add_single(Rule::Key, text, facts, findings);
            }
            None => {}
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
            found.add(facts, 0);
        }
    }

    /// Names the ban that a request caused, with the requests that led to it.
    fn judge_ban(&mut self, record: &Record, facts: &Arc<Facts>, findings: &mut Findings) {
        let strikes = record.arrival.strikes;
        if strikes == 0 {
            return;
        }
        if self.strikes.len() == MAX_STRIKES {
            self.strikes.pop_front();
        }
        self.strikes.push_back(Arc::clone(facts));
        if !facts.is_banned() {
            return;
        }
        let mut found = Found::new(Rule::ToldToWait, What::Ban, &self.name, u64::from(strikes));
        let counted = usize::try_from(strikes).unwrap_or(usize::MAX);
        for strike in self.strikes.iter().rev().take(counted).rev() {
            found.add(strike, 0);
        }
        found.set_offences(u64::from(strikes));
        self.strikes.clear();
        findings.open(found);
    }
}
