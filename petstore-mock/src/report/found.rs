//! What the rules found so far, in bounded memory. Its severity is decided when it is reported.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    facts::Facts,
    finding::{Finding, JudgedRequest, Role},
    rule::{Rule, Severities, Severity},
    text::{count, list, pause, time_of_day, times},
};
use crate::plan::Plan;

/// The maximum number of findings. The rest is only counted.
const MAX_FOUND: usize = 1_000;
/// The maximum number of requests that a finding shows.
const MAX_SHOWN: usize = 12;

/// The key of a finding, as it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyName {
    pub(super) name: String,
    pub(super) plan: Option<Plan>,
    /// The most requests that may be under way at once.
    pub(super) senders: u32,
}

/// Something that breaks a rule, if there is enough of it.
#[derive(Clone, Debug)]
pub(super) struct Found {
    rule: Rule,
    what: What,
    key: Arc<KeyName>,
    /// The exchange that makes the others an offence.
    cause: Option<Arc<Facts>>,
    /// The first requests that break the rule.
    shown: Vec<Arc<Facts>>,
    /// The number of all.
    offences: u64,
    /// From how many on they break the rule, and how many count.
    needed: u64,
    counted: u64,
    /// How many connections of the key were open.
    connections: usize,
}

/// What only one kind of finding has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Requests came in a wait.
    Early,
    /// The key was banned.
    Ban,
    /// A failed request came again.
    Repeats(Repeats),
    /// A `POST` came again.
    Post,
    /// A key was in this query parameter, or in the path if the name is empty.
    KeyInUrl(Box<str>),
    /// A key was sent under another scheme.
    OtherScheme,
    /// The deprecated operation was used.
    Deprecated,
}

/// The repeats of a failed request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repeats {
    /// The most quick repeats one after the other.
    pub(super) run: u64,
    pub(super) quick: u64,
    pub(super) all: u64,
    /// The sum of the pauses before the quick ones.
    pub(super) pauses: Duration,
}

impl Found {
    /// Creates a finding that breaks the rule from this number of offences on.
    pub(super) fn new(rule: Rule, what: What, key: &Arc<KeyName>, needed: u64) -> Self {
        Self {
            rule,
            what,
            key: Arc::clone(key),
            cause: None,
            shown: Vec::new(),
            offences: 0,
            needed,
            counted: 0,
            connections: 0,
        }
    }

    pub(super) fn after(mut self, cause: &Arc<Facts>) -> Self {
        self.cause = Some(Arc::clone(cause));
        self
    }

    /// Adds a request that breaks the rule, while so many connections of its key were open.
    pub(super) fn add(&mut self, offence: &Arc<Facts>, connections: usize) {
        self.offences += 1;
        self.counted += 1;
        self.connections = self.connections.max(connections);
        if self.shown.len() < MAX_SHOWN {
            self.shown.push(Arc::clone(offence));
        }
    }

    /// Sets the repeats of a failed request.
    pub(super) fn set_repeats(&mut self, repeats: Repeats) {
        self.counted = repeats.run;
        self.what = What::Repeats(repeats);
    }

    /// Returns the severity; `None` if the rule is off.
    fn severity(&self, set: &Severities) -> Option<Severity> {
        let is_broken = match &self.what {
            What::Ban => false,
            // Others may be the first attempts of several senders.
            What::Repeats(it) if it.quick * 4 < it.all * 3 => false,
            _ => self.counted >= self.needed,
        };
        let severity = self.rule.severity(set)?;
        Some(if is_broken {
            severity
        } else {
            Severity::Notice
        })
    }

    /// Returns the finding; `None` if the rule is off. `mask` masks the keys in a text.
    fn finding(&self, set: &Severities, mask: &impl Fn(&str) -> String) -> Option<Finding> {
        let severity = self.severity(set)?;
        let role = |facts, role| self.request(facts, role, mask);
        let cause = self.cause.iter().map(|cause| role(cause, Role::Cause));
        let offences = self
            .shown
            .iter()
            .map(|offence| role(offence, Role::Offence));
        let mut requests: Vec<_> = cause.chain(offences).collect();
        requests.sort_by_key(|request| (request.role != Role::Cause, request.number));
        Some(Finding {
            rule: self.rule,
            severity,
            key: self.key.name.clone(),
            plan: self.key.plan,
            senders: self.key.senders,
            text: mask(&self.sentence()),
            offences: self.offences,
            requests,
            remedy: self.remedy(severity),
        })
    }

    /// Says what to do if the key has several senders that were not declared.
    fn remedy(&self, severity: Severity) -> Option<String> {
        let depends = matches!(self.what, What::Early | What::Repeats(_) | What::Post);
        if !depends || severity == Severity::Notice || self.key.senders > 1 {
            return None;
        }
        let seen = match self.connections {
            0 | 1 => String::new(),
            open => format!(" ({open} connections were open)"),
        };
        Some(format!(
            "If several requests of this key may be under way at once, say so: `--senders N`{seen}"
        ))
    }

    fn request(&self, facts: &Facts, role: Role, mask: &impl Fn(&str) -> String) -> JudgedRequest {
        let told = self.cause.as_ref().and_then(|cause| cause.told());
        let is_early = self.what == What::Early && role == Role::Offence;
        let early = told.map(|told| told.until().saturating_sub(facts.arrived().at()));
        JudgedRequest::new(
            facts,
            role,
            mask(facts.target()),
            early.filter(|_| is_early),
        )
    }

    /// Says what happened.
    fn sentence(&self) -> String {
        let first = self.cause.as_ref().or(self.shown.first());
        let name = first.map(|facts| facts.name()).unwrap_or_default();
        match &self.what {
            What::Early => {
                let told = self.told();
                match self.rule {
                    Rule::RetryAfter => {
                        let again = times(self.offences);
                        format!("{name} came again {again} while it was told to wait {told}")
                    }
                    _ => {
                        let requests = count(self.offences, "request");
                        format!("{requests} arrived while the key was told to wait {told}")
                    }
                }
            }
            What::Ban => {
                let requests = count(self.offences, "request");
                let until = self.shown.last().and_then(|last| last.told());
                let until = until.map(|told| format!(" until {}", time_of_day(told.until())));
                format!(
                    "the key was banned{}, because {requests} arrived before Retry-After had \
                     elapsed ({})",
                    until.unwrap_or_default(),
                    self.numbers(),
                )
            }
            What::Repeats(repeats) => {
                let quick = u32::try_from(repeats.quick).unwrap_or(u32::MAX).max(1);
                let mean = pause(repeats.pauses / quick);
                let again = times(self.offences);
                format!(
                    "{name} failed and was sent again {again}, {mean} after each failure on average"
                )
            }
            What::Post => self.sentence_of_post(&name),
            What::KeyInUrl(parameter) if parameter.is_empty() => {
                let numbers = self.numbers();
                format!("a segment of the path is a key of this server ({numbers})")
            }
            What::KeyInUrl(parameter) => {
                let numbers = self.numbers();
                format!("the query parameter `{parameter}` is a key of this server ({numbers})")
            }
            What::OtherScheme => {
                let numbers = self.numbers();
                format!("a key of this server was not sent after `Bearer ` ({numbers})")
            }
            What::Deprecated => {
                let numbers = self.numbers();
                format!("GET /pets/{{petId}} will be removed on 5 December 2030 ({numbers})")
            }
        }
    }

    fn sentence_of_post(&self, name: &str) -> String {
        let (Some(first), Some(next)) = (&self.cause, self.shown.first()) else {
            return String::new();
        };
        let answer = match first.status() {
            Some(status) => status.to_string(),
            None => "no response".to_owned(),
        };
        let again = match self.offences {
            1 => String::new(),
            offences => format!("{}, first ", times(offences)),
        };
        let after = pause(next.arrived().gap_since(first.ended()));
        let exchanges = self.cause.iter().chain(&self.shown);
        let added: Vec<_> = exchanges.filter_map(|facts| facts.added()).collect();
        let outcome = match &*added {
            [] => "no pet was created".to_owned(),
            [id] => format!("pet {id} was created once"),
            ids => format!("pets {} are duplicates", list(ids)),
        };
        format!(
            "the same {name} came again {again}{after} after {answer} (#{}), without a look at \
             GET /pets; {outcome}",
            first.number()
        )
    }

    /// Describes the wait that was named.
    fn told(&self) -> String {
        let Some((cause, told)) = self.cause.as_ref().and_then(|it| Some((it, it.told()?))) else {
            return String::new();
        };
        let banned = if cause.is_banned() {
            ", the key is banned"
        } else {
            ""
        };
        format!(
            "until {} ({}{banned}, Retry-After: {}, at {})",
            time_of_day(told.until()),
            cause.status().unwrap_or_default(),
            told.retry_after(),
            time_of_day(cause.arrived().at()),
        )
    }

    /// Lists the numbers of the offences.
    fn numbers(&self) -> String {
        let numbers = self
            .shown
            .iter()
            .map(|facts| format!("#{}", facts.number()));
        let numbers: Vec<_> = numbers.collect();
        match self.offences - numbers.len() as u64 {
            0 => list(&numbers),
            more => format!("{} and {more} more", numbers.join(", ")),
        }
    }
}

/// All findings of a server.
#[derive(Debug, Default)]
pub(super) struct Findings {
    severities: Severities,
    /// By their numbers, which are not reused.
    all: BTreeMap<u64, Found>,
    last: u64,
    /// The number of findings that were dropped, by severity.
    dropped: [u64; 3],
}

impl Findings {
    pub(super) fn new(severities: Severities) -> Self {
        Self {
            severities,
            ..Self::default()
        }
    }

    pub(super) const fn severities(&self) -> &Severities {
        &self.severities
    }

    pub(super) const fn dropped(&self) -> [u64; 3] {
        self.dropped
    }

    /// Removes all findings.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.dropped = [0; 3];
    }

    /// Adds a finding, and returns its number.
    pub(super) fn open(&mut self, found: Found) -> u64 {
        self.last += 1;
        if found.rule.severity(&self.severities).is_none() {
            return self.last;
        }
        if self.all.len() >= MAX_FOUND {
            self.drop_one();
        }
        self.all.insert(self.last, found);
        self.last
    }

    /// Drops the oldest notice, or else the oldest finding. Its severity is judged now.
    fn drop_one(&mut self) {
        let severity = |found: &Found| found.severity(&self.severities);
        let is_notice = |found: &Found| severity(found) == Some(Severity::Notice);
        let notice = self.all.iter().find(|(_, found)| is_notice(found));
        let Some((number, found)) = notice.or(self.all.first_key_value()) else {
            return;
        };
        if let Some(severity) = severity(found) {
            self.dropped[severity as usize] += 1;
        }
        let number = *number;
        self.all.remove(&number);
    }

    /// Returns a finding, unless it was dropped or its rule is off.
    pub(super) fn get(&mut self, number: u64) -> Option<&mut Found> {
        self.all.get_mut(&number)
    }

    /// Returns the findings, the most severe first. `mask` masks the keys in a text.
    pub(super) fn list(&self, mask: &impl Fn(&str) -> String) -> Vec<Finding> {
        let all = self.all.values();
        let mut findings: Vec<_> = all
            .filter_map(|found| found.finding(&self.severities, mask))
            .collect();
        findings.sort_by_key(|it| (Reverse(it.severity), it.rule, it.first_request()));
        findings
    }
}
