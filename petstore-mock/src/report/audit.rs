//! Judges each exchange as it ends, and keeps the findings until they are forgotten on demand, whatever
//! is reset meanwhile.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{
    client::Client,
    finding::{Evidence, Finding, Report, ReportedClient},
    request::{JudgedRequest, Role, push_bounded},
    rule::{Rule, Severities, Severity},
};
use crate::exchange::{InFlight, Record};

/// How many clients are remembered, and how many scopes are told apart.
const MAX_CLIENTS: usize = 1_024;
const MAX_SCOPES: usize = 4_096;
/// The length of a scope's or a client's name, in bytes.
const MAX_NAME: usize = 200;
/// How many findings are kept. Further breaches are counted.
const MAX_FINDINGS: usize = 2_000;
/// How many breaches a finding shows, and how many it knows if they go on; all are counted.
const MAX_EVIDENCE: usize = 10;
const MAX_BREACHES: usize = 64;
/// How many requests are shown after those concerned.
const SHOWN_AFTER: u32 = 2;

const DEFAULT_SCOPE: &str = "default";
const OTHER_SCOPES: &str = "other scopes";

/// The clients, what is remembered of each, and all findings.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    clients: HashMap<u64, Client>,
    /// The scopes that are open in this process, the innermost last.
    open_scopes: Vec<(u64, Arc<str>)>,
    opened_scopes: u64,
    /// The scopes, in the order of their first requests, with the number of these.
    scopes: Vec<(Arc<str>, u64)>,
    findings: Findings,
    requests: u64,
}

/// A finding for each rule and client.
#[derive(Debug, Default)]
struct Findings {
    severities: Severities,
    list: Vec<Finding>,
    /// Breaches beyond the findings that are kept, by severity.
    unlisted: [u64; 3],
}

impl Audit {
    pub(crate) fn new(severities: Severities) -> Self {
        let findings = Findings { severities, ..Findings::default() };
        Self { findings, ..Self::default() }
    }

    /// Opens a scope for the requests that name none; returns its number.
    pub(crate) fn open_scope(&mut self, name: &str) -> u64 {
        self.opened_scopes += 1;
        self.open_scopes.push((self.opened_scopes, shortened(name).into()));
        self.opened_scopes
    }

    pub(crate) fn close_scope(&mut self, number: u64) {
        self.open_scopes.retain(|(other, _)| *other != number);
    }

    /// Records the arrival of a request; returns its client, and how that sends.
    pub(crate) fn arrived(&mut self, record: &Record) -> InFlight {
        let key = record.arrival.key.as_ref();
        let user_agent = record.fields.get("user-agent");
        let named = record.fields.get("x-mock-scope").map(String::from_utf8_lossy);
        let made_by_test = || key.filter(|key| key.is_made_by_test()).map(|key| key.name());
        let scope = match (&named, self.open_scopes.last()) {
            (Some(name), _) => shortened(name).into(),
            (None, Some((_, name))) => Arc::clone(name),
            (None, None) => made_by_test().as_deref().unwrap_or(DEFAULT_SCOPE).into(),
        };
        let mut hasher = DefaultHasher::new();
        let number = key.map(|key| key.number());
        (&scope, number, record.arrival.credentials, user_agent).hash(&mut hasher);
        let id = hasher.finish();
        if !self.clients.contains_key(&id) {
            self.make_room();
            let place = self.place_of_scope(scope);
            self.clients.insert(id, Client::new(reported(record), place));
        }
        let client = self.clients.entry(id).or_default();
        let (width, is_parallel) = client.arrived(record);
        InFlight { client: id, width, is_parallel }
    }

    /// Judges an exchange that ended. A `boundary` is the number of resets, changes of faults and the
    /// like so far: what a client did before the last one is not held against it.
    pub(crate) fn ended(&mut self, record: &Record, request: JudgedRequest, boundary: u64) {
        self.requests += 1;
        let Some(client) = self.clients.get_mut(&record.in_flight.client) else { return };
        self.scopes[client.scope].1 += 1;
        let judgement = client.judge(record, &request, boundary);
        let findings = &mut self.findings;
        client.open_evidence.retain_mut(|(rule, breach, left)| {
            if let Some(evidence) = findings.evidence(client.findings.get(rule), *breach) {
                evidence.add(request.with_role(Role::After));
            }
            *left -= 1;
            *left > 0
        });
        if let Some(breach) = judgement.withdrawn {
            findings.withdraw(client.findings.get(&Rule::SteadyRetry), breach);
        }
        for (rule, evidence) in judgement.breaches {
            findings.add(client, &self.scopes[client.scope].0, rule, evidence);
        }
        client.ended(request);
    }

    /// Returns the report; `mask` takes the keys out of a text.
    pub(crate) fn report(&self, mask: impl Fn(&str) -> String) -> Report {
        let Findings { severities, unlisted, .. } = self.findings;
        let masked = |(name, requests): &(Arc<str>, u64)| (mask(name).into(), *requests);
        let scopes = self.scopes.iter().map(masked).collect();
        let found = self.findings.list.iter().filter(|finding| finding.count > 0);
        let mut findings: Vec<_> = found.cloned().collect();
        for finding in &mut findings {
            finding.scope = mask(&finding.scope).into();
            finding.client.user_agent = finding.client.user_agent.as_deref().map(&mask);
            for evidence in &mut finding.evidence {
                evidence.text = mask(&evidence.text);
                for request in &mut evidence.requests {
                    request.path = mask(&request.path).into();
                }
            }
        }
        findings.sort_by_key(|finding| (Reverse(finding.severity), finding.rule));
        Report { requests: self.requests, scopes, findings, severities, unlisted }
    }

    /// Forgets all findings, and what is remembered of the clients.
    pub(crate) fn forget(&mut self) {
        self.findings = Findings { severities: self.findings.severities, ..Findings::default() };
        self.requests = 0;
        self.scopes.iter_mut().for_each(|(_, requests)| *requests = 0);
        self.clients.values_mut().for_each(Client::forget);
    }

    fn place_of_scope(&mut self, name: Arc<str>) -> usize {
        let is_full = self.scopes.len() >= MAX_SCOPES;
        let name = if is_full { OTHER_SCOPES.into() } else { name };
        self.scopes.iter().position(|(scope, _)| *scope == name).unwrap_or_else(|| {
            self.scopes.push((name, 0));
            self.scopes.len() - 1
        })
    }

    /// Forgets the client that was seen least recently, if there are too many.
    fn make_room(&mut self) {
        if self.clients.len() < MAX_CLIENTS {
            return;
        }
        let idle = self.clients.iter().filter(|(_, client)| client.is_idle());
        let oldest = idle.min_by_key(|(_, client)| client.last_seen()).map(|(id, _)| *id);
        if let Some(id) = oldest {
            self.clients.remove(&id);
        }
    }
}

impl Findings {
    /// Adds a breach of a rule by a client, or a request to a known breach.
    fn add(&mut self, client: &mut Client, scope: &Arc<str>, rule: Rule, mut evidence: Evidence) {
        let Some(severity) = self.severities.of(rule) else { return };
        let is_notice = severity == Severity::Notice;
        let place = match client.findings.get(&rule) {
            Some(place) => *place,
            None if self.list.len() == MAX_FINDINGS => {
                self.unlisted[severity as usize] += 1;
                return;
            }
            None => self.begin(client, scope, rule, severity),
        };
        let finding = &mut self.list[place];
        if finding.breaches.contains(&evidence.breach) {
            if let Some(known) = self.evidence(Some(&place), evidence.breach) {
                known.extend(evidence, is_notice);
            }
            return;
        }
        push_bounded(&mut finding.breaches, evidence.breach, MAX_BREACHES);
        finding.count += 1;
        if finding.evidence.len() == MAX_EVIDENCE {
            return;
        }
        if !is_notice {
            evidence = evidence.show(client.recent.iter().cloned());
            client.open_evidence.push((rule, evidence.breach, SHOWN_AFTER));
        }
        finding.evidence.push(evidence);
    }

    /// Begins a finding without a breach; returns its place.
    fn begin(
        &mut self,
        client: &mut Client,
        scope: &Arc<str>,
        rule: Rule,
        severity: Severity,
    ) -> usize {
        let place = self.list.len();
        self.list.push(Finding {
            rule,
            severity,
            scope: Arc::clone(scope),
            client: client.reported.clone(),
            count: 0,
            source: rule.about().source,
            advice: rule.about().advice,
            evidence: Vec::new(),
            breaches: VecDeque::new(),
        });
        client.findings.insert(rule, place);
        place
    }

    /// Returns the evidence of a breach, if it is shown.
    fn evidence(&mut self, place: Option<&usize>, breach: u64) -> Option<&mut Evidence> {
        let finding = &mut self.list[*place?];
        finding.evidence.iter_mut().find(|evidence| evidence.breach == breach)
    }

    /// Takes back a breach.
    fn withdraw(&mut self, place: Option<&usize>, breach: u64) {
        let Some(place) = place else { return };
        let finding = &mut self.list[*place];
        finding.count = finding.count.saturating_sub(1);
        finding.breaches.retain(|one| *one != breach);
        finding.evidence.retain(|evidence| evidence.breach != breach);
    }
}

fn reported(record: &Record) -> ReportedClient {
    let key = record.arrival.key.as_ref();
    let keyless = match record.fields.get("authorization") {
        Some(_) => "an unknown key",
        None => "no key",
    };
    let agent = record.fields.get("user-agent").map(String::from_utf8_lossy);
    ReportedClient {
        key: key.map_or_else(|| keyless.to_owned(), |key| key.name()),
        plan: key.map(|key| key.plan()),
        user_agent: agent.map(|it| shortened(it.trim()).to_owned()).filter(|it| !it.is_empty()),
    }
}

/// Returns the beginning of a name that is too long.
fn shortened(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}
