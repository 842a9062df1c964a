//! What the rules found, in bounded memory. Its severity is decided when it is reported.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    facts::Facts,
    finding::{Finding, JudgedRequest, Role},
    rule::{Rule, Severities, Severity},
    text::{count, list, pause, time_of_day, times},
};
use crate::{
    exchange::{KeyLabel, Record},
    operation::Operation,
    plan::Plan,
    text::escaped,
};

/// The maximum number of requests that a finding shows.
const MAX_SHOWN: usize = 12;

/// The key of a finding, as it is reported.
#[derive(Clone)]
pub(super) struct KeyName {
    name: String,
    plan: Option<Plan>,
    senders: u32,
}

impl KeyName {
    pub(super) fn of(record: &Record) -> Self {
        let (name, plan, senders) = match &record.arrival.key {
            Some(key) => (key.name(), Some(key.plan()), key.senders()),
            None => ("no valid key".to_owned(), None, 1),
        };
        Self {
            name,
            plan,
            senders,
        }
    }

    /// Whether the key has the same plan and senders as before.
    pub(super) fn is_still(&self, key: &KeyLabel) -> bool {
        (self.plan, self.senders) == (Some(key.plan()), key.senders())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns the most requests that may be under way at once, as declared.
    pub(super) const fn senders(&self) -> u32 {
        self.senders
    }
}

/// Something that breaks a rule, if there is enough of it.
#[derive(Clone)]
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
    /// From how many on they break the rule.
    needed: u64,
}

/// What only one kind of finding has.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum What {
    /// Requests came in a wait.
    Early,
    /// The key was banned.
    Ban,
    /// A failed request came again.
    Repeats(Repeats),
    /// A `POST` came again.
    Post,
    /// Requests each broke the rule by themselves. The text says how.
    Single(Box<str>),
}

/// The repeats of a failed request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repeats {
    /// The number of quick repeats at the end, and the most one after the other.
    run: u64,
    longest_run: u64,
    quick: u64,
    all: u64,
    /// The sum of the pauses before the quick ones.
    pauses: Duration,
}

impl Repeats {
    /// Adds a repeat that came quickly, after this pause.
    pub(super) fn add_quick(&mut self, pause: Duration) {
        self.all += 1;
        self.quick += 1;
        self.pauses += pause;
        self.run += 1;
        self.longest_run = self.longest_run.max(self.run);
    }

    /// Adds a repeat that came after a wait.
    pub(super) fn add_slow(&mut self) {
        self.all += 1;
        self.run = 0;
    }

    /// Returns the mean of the pauses before the quick repeats.
    fn mean_pause(&self) -> Duration {
        self.pauses / u32::try_from(self.quick).unwrap_or(u32::MAX).max(1)
    }

    /// Returns the number of quick repeats at the end.
    pub(super) const fn run(&self) -> u64 {
        self.run
    }
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
        }
    }

    pub(super) fn after(mut self, cause: &Arc<Facts>) -> Self {
        self.cause = Some(Arc::clone(cause));
        self
    }

    /// Adds a request that breaks the rule.
    pub(super) fn add(&mut self, offence: &Arc<Facts>) {
        self.offences += 1;
        if self.shown.len() < MAX_SHOWN {
            self.shown.push(Arc::clone(offence));
        }
    }

    /// Sets the number of requests that break the rule, of which not all were added.
    pub(super) fn set_offences(&mut self, offences: u64) {
        self.offences = offences;
    }

    /// Sets the repeats of a failed request.
    pub(super) fn set_repeats(&mut self, repeats: Repeats) {
        self.what = What::Repeats(repeats);
    }

    /// Returns the severity; `None` if the rule is off.
    fn severity(&self, set: &Severities) -> Option<Severity> {
        let is_broken = match &self.what {
            What::Ban => false,
            // Others may be the first attempts of several senders.
            What::Repeats(it) => self.is_enough() && it.quick * 4 >= it.all * 3,
            _ => self.is_enough(),
        };
        let severity = self.rule.severity(set)?;
        Some(if is_broken {
            severity
        } else {
            Severity::Notice
        })
    }

    /// Whether there are as many offences as the declared number of senders needs.
    fn is_enough(&self) -> bool {
        match &self.what {
            What::Repeats(it) => it.longest_run >= self.needed,
            _ => self.offences >= self.needed,
        }
    }

    /// Whether the verdict depends on the number of senders.
    fn depends_on_senders(&self) -> bool {
        matches!(self.what, What::Early | What::Repeats(_) | What::Post)
    }

    /// Returns the finding; `None` if the rule is off. `mask` masks the keys in a text.
    fn finding(&self, set: &Severities, mask: &impl Fn(&str) -> String) -> Option<Finding> {
        let severity = self.severity(set)?;
        // Text of a client must not end a line of the report, or change the terminal's colour.
        let shown = |text: &str| escaped(&mask(text));
        let role = |facts, role| self.request(facts, role, &shown);
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
            text: shown(&self.sentence()) + &self.leniency(),
            offences: self.offences,
            requests,
            advice: self.rule.advice().into(),
            remedy: self.remedy(severity),
        })
    }

    /// Says what to do if the key has several senders that were not declared.
    fn remedy(&self, severity: Severity) -> Option<String> {
        if !self.depends_on_senders() || severity == Severity::Notice || self.key.senders > 1 {
            return None;
        }
        let seen = match self.open_connections() {
            0 | 1 => String::new(),
            open => format!(" (at least {open} connections were open)"),
        };
        Some(format!(
            "If several requests of this key may be under way at once, say so: `--senders N`, in \
             Rust `.senders(N)`{seen}"
        ))
    }

    /// Returns how many connections of the shown requests were open at once. Each was open from the first
    /// of its requests to the last one, and from the start if it had been used before.
    fn open_connections(&self) -> usize {
        let mut spans = BTreeMap::new();
        for (place, facts) in self.cause.iter().chain(&self.shown).enumerate() {
            let first = if facts.was_open() { 0 } else { place };
            let span = spans
                .entry(facts.request().connection)
                .or_insert(first..=place);
            *span = *span.start()..=place;
        }
        let open_at = |place| spans.values().filter(|span| span.contains(&place)).count();
        (0..=MAX_SHOWN).map(open_at).max().unwrap_or_default()
    }

    /// Says why offences are no more than a notice, if that is because of what was declared.
    fn leniency(&self) -> String {
        if !self.depends_on_senders() || self.is_enough() || self.key.senders == 1 {
            return String::new();
        }
        format!(
            "; this is a notice because {} senders are declared",
            self.key.senders
        )
    }

    fn request(&self, facts: &Facts, role: Role, shown: &impl Fn(&str) -> String) -> JudgedRequest {
        let told = match (&self.what, role) {
            (What::Early, Role::Offence) => self.cause.as_ref().and_then(|cause| cause.told()),
            _ => None,
        };
        let early = told.map(|told| told.until().saturating_sub(facts.arrived().at()));
        JudgedRequest {
            role,
            path: shown(&facts.request().path).into(),
            early_seconds: early.map(|early| early.as_secs_f64()),
            ..facts.request().clone()
        }
    }

    /// Says what happened.
    fn sentence(&self) -> String {
        let first = self.cause.as_ref().or(self.shown.first());
        let name = first.map(|facts| facts.name()).unwrap_or_default();
        let requests = count(self.offences, "request");
        let numbers = self.numbers();
        match &self.what {
            What::Early if self.rule == Rule::RetryAfter => {
                let (again, told) = (times(self.offences), self.told());
                format!("{name} came again {again} while it was told to wait {told}")
            }
            What::Early => {
                let told = self.told();
                format!("{requests} arrived while the key was told to wait {told}")
            }
            What::Ban => {
                let number = first.map_or(0, |facts| facts.request().number);
                format!(
                    "the key was banned at #{number}, because {requests} arrived before its used-up \
                     quota had reset"
                )
            }
            What::Repeats(repeats) => {
                let (again, mean) = (times(self.offences), pause(repeats.mean_pause()));
                format!(
                    "{name} failed and was sent again {again}, {mean} after each failure on average"
                )
            }
            What::Post => self.sentence_of_post(&name),
            What::Single(text) => format!("{text} ({numbers})"),
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
        let added: Vec<_> = exchanges
            .filter_map(|facts| facts.request().added)
            .collect();
        let outcome = match &*added {
            _ if first.operation() != Some(Operation::CreatePet) => String::new(),
            [] => "; no pet was created".to_owned(),
            [id] => format!("; pet {id} was created once"),
            ids => format!("; pets {} are duplicates", list(ids)),
        };
        format!(
            "the same {name} came again {again}{after} after {answer} (#{}), without a look at \
             GET {}{outcome}",
            first.request().number,
            first.path()
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
            .map(|facts| format!("#{}", facts.request().number));
        let numbers: Vec<_> = numbers.collect();
        match self.offences - numbers.len() as u64 {
            0 => list(&numbers),
            more => format!("{} and {more} more", numbers.join(", ")),
        }
    }
}

/// The maximum number of findings. The rest is only counted.
const MAX_FOUND: usize = 1_000;

/// All findings of a server.
#[derive(Default)]
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

    /// Returns the findings, the oldest first. `mask` masks the keys in a text.
    pub(super) fn list(&self, mask: &impl Fn(&str) -> String) -> Vec<Finding> {
        let all = self.all.values();
        all.filter_map(|found| found.finding(&self.severities, mask))
            .collect()
    }
}
