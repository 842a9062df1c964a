//! Judges each exchange at its end, and keeps the findings until they are cleared explicitly.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

use super::{
    client::Client,
    finding::{Finding, Report, ReportedClient},
    request::JudgedRequest,
    rule::{Rule, Severities},
};
use crate::exchange::{InFlight, Record};

/// The maximum number of clients and scopes.
const MAX_CLIENTS: usize = 1_024;
const MAX_SCOPES: usize = 4_096;
/// The maximum length of a scope's or client's name, in bytes.
const MAX_NAME: usize = 200;
/// The maximum number of kept findings. Further breaches are only counted.
const MAX_FINDINGS: usize = 2_000;

const DEFAULT_SCOPE: &str = "default";
const OTHER_SCOPES: &str = "other scopes";

/// The clients with their state, and all findings.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    severities: Severities,
    clients: BTreeMap<u64, Client>,
    /// The open scopes of this process, the innermost last.
    open_scopes: Vec<Arc<str>>,
    /// The scopes in order of their first requests, with their numbers of requests.
    scopes: Vec<(Arc<str>, u64)>,
    requests: u64,
    /// The findings by client and rule. They outlive the clients.
    findings: BTreeMap<(u64, Rule), Finding>,
    /// Breaches beyond the kept findings, by severity.
    unlisted: [u64; 3],
}

impl Audit {
    pub(crate) fn new(severities: Severities) -> Self {
        Self {
            severities,
            ..Self::default()
        }
    }

    /// Opens a scope for requests that name none. Returns the text that closes it.
    pub(crate) fn open_scope(&mut self, name: &str) -> Arc<str> {
        let scope: Arc<str> = shortened(name).into();
        self.open_scopes.push(Arc::clone(&scope));
        scope
    }

    pub(crate) fn close_scope(&mut self, scope: &Arc<str>) {
        self.open_scopes.retain(|open| !Arc::ptr_eq(open, scope));
    }

    /// Records the arrival of a request. Returns its client and its other requests in flight.
    pub(crate) fn arrived(&mut self, record: &Record) -> InFlight {
        let key = record.arrival.key.as_ref();
        let user_agent = record.fields.get("user-agent");
        let named = record
            .fields
            .get("x-mock-scope")
            .map(String::from_utf8_lossy);
        let made_by_test = || {
            key.filter(|key| key.is_made_by_test())
                .map(|key| key.name())
        };
        let scope: Cow<'_, str> = match (&named, self.open_scopes.last()) {
            (Some(name), _) => shortened(name).into(),
            (None, Some(name)) => Cow::Borrowed(name),
            (None, None) => made_by_test().map_or(DEFAULT_SCOPE.into(), Cow::Owned),
        };
        let number = key.map(|key| key.number());
        let client = (&scope, number, record.arrival.credentials, user_agent);
        let id = BuildHasherDefault::<DefaultHasher>::default().hash_one(client);
        if !self.clients.contains_key(&id) {
            let place = place_of_scope(&mut self.scopes, &scope);
            self.make_room();
            self.clients
                .insert(id, Client::new(reported(record), place));
        }
        let (width, is_parallel) = self.clients.entry(id).or_default().arrived(record);
        InFlight {
            client: id,
            width,
            is_parallel,
        }
    }

    /// Judges a completed exchange. `boundary` is the number of boundaries so far. Requests before
    /// the last one do not count against a client.
    pub(crate) fn ended(&mut self, record: &Record, request: JudgedRequest, boundary: u64) {
        self.requests += 1;
        let id = record.in_flight.client;
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let (scope, requests) = &mut self.scopes[client.scope];
        *requests += 1;
        let ruling = client.judge(record, &request, boundary);
        let known = self.findings.range_mut((id, Rule::ToldToWait)..);
        for (_, finding) in known.take_while(|((client, _), _)| *client == id) {
            finding.show_after(&request);
        }
        if let Some(breach) = ruling.withdrawn
            && let Some(finding) = self.findings.get_mut(&(id, Rule::SteadyRetry))
        {
            finding.withdraw(breach);
        }
        for (rule, evidence) in ruling.breaches {
            let Some(severity) = rule.severity(&self.severities) else {
                continue;
            };
            let is_full = self.findings.len() == MAX_FINDINGS;
            let finding = match self.findings.entry((id, rule)) {
                Entry::Vacant(_) if is_full => {
                    self.unlisted[severity as usize] += 1;
                    continue;
                }
                entry => {
                    entry.or_insert_with(|| Finding::new(rule, severity, scope, &client.reported))
                }
            };
            finding.add(evidence, &client.recent);
        }
        client.ended(request);
    }

    /// Returns the report. `mask` masks the keys in a text.
    pub(crate) fn report(&self, mask: impl Fn(&str) -> String) -> Report {
        let found = self.findings.values().filter(|finding| finding.count > 0);
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
        findings.sort_by_key(|it| (Reverse(it.severity), it.rule, it.first_request()));
        let masked = |(name, requests): &(Arc<str>, u64)| (mask(name).into(), *requests);
        Report {
            requests: self.requests,
            scopes: self.scopes.iter().map(masked).collect(),
            findings,
            severities: self.severities.clone(),
            unlisted: self.unlisted,
        }
    }

    /// Clears all findings and the state of the clients.
    pub(crate) fn forget(&mut self) {
        self.findings.clear();
        (self.requests, self.unlisted) = (0, [0; 3]);
        self.scopes
            .iter_mut()
            .for_each(|(_, requests)| *requests = 0);
        self.clients.values_mut().for_each(Client::forget);
    }

    /// Drops the least recently seen client, if there are too many.
    fn make_room(&mut self) {
        if self.clients.len() < MAX_CLIENTS {
            return;
        }
        let idle = self
            .clients
            .iter()
            .filter(|(_, client)| client.in_flight == 0);
        let oldest = idle
            .min_by_key(|(_, client)| client.last_arrival)
            .map(|(id, _)| *id);
        oldest.and_then(|id| self.clients.remove(&id));
    }
}

/// Returns the index of a scope. Adds it if there is room.
fn place_of_scope(scopes: &mut Vec<(Arc<str>, u64)>, name: &str) -> usize {
    let name = if scopes.len() < MAX_SCOPES {
        name
    } else {
        OTHER_SCOPES
    };
    scopes
        .iter()
        .position(|(scope, _)| **scope == *name)
        .unwrap_or_else(|| {
            scopes.push((name.into(), 0));
            scopes.len() - 1
        })
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
        user_agent: agent
            .map(|it| shortened(it.trim()).to_owned())
            .filter(|it| !it.is_empty()),
    }
}

/// Truncates a name that is too long.
fn shortened(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::super::{corpus, rule::Severity};
    use super::*;

    fn audit(lines: &[String]) -> Audit {
        corpus::audit(lines.iter().map(String::as_str))
    }

    #[test]
    fn a_report_masks_all_texts_that_may_hold_a_key() {
        let line = "0+0.003 1<0.001 GET /v1/pets?k=SECRET 200 key-in=SECRET agent=SECRET";
        let report =
            audit(&[format!("{line} scope=SECRET")]).report(|it| it.replace("SECRET", "*"));
        let json = report.to_json();
        assert!(
            json.contains("key-in-url") && json.contains("?k=*"),
            "{json}"
        );
        assert!(!json.contains("SECRET"), "{json}");
    }

    #[test]
    fn clients_scopes_and_findings_are_bounded_and_all_breaches_are_counted() {
        let scope = |n: usize| format!("{n}+0.003 {n}<0.001 GET /v1/pets 200 scope={n}");
        let many: Vec<_> = (1..=MAX_SCOPES + 2).map(scope).collect();
        let scopes = audit(&many).scopes;
        assert_eq!(scopes.len(), 4_097);
        assert_eq!(
            scopes.last().map(|(name, count)| (&**name, *count)),
            Some((OTHER_SCOPES, 2))
        );
        let finding = |n: usize| format!("{n}+0.003 {n}<0.001 GET /v1/pets 200 key-in=k agent={n}");
        let mut audit = audit(&(1..=2_003).map(finding).collect::<Vec<_>>());
        assert_eq!(audit.clients.len(), 1_024);
        let agents = audit
            .clients
            .values()
            .filter_map(|it| it.reported.user_agent.as_deref());
        let oldest = agents.map(|agent| agent.parse::<u32>().unwrap()).min();
        assert_eq!(oldest, Some(980), "the oldest are forgotten first");
        let severity = Rule::KeyInUrl.about().severity;
        let report = audit.report(str::to_owned);
        assert_eq!(
            (report.findings().count(), report.count(severity)),
            (2_000, 2_003)
        );
        assert!(
            report
                .to_text()
                .contains("\n3 violations more, not listed\n")
        );
        audit.forget();
        let report = audit.report(str::to_owned);
        assert_eq!((report.findings().count(), report.scopes().count()), (0, 0));
        for severity in [Severity::Notice, Severity::Warning, Severity::Violation] {
            assert_eq!(report.count(severity), 0);
        }
        assert_eq!((audit.requests, audit.findings.len()), (0, 0));
    }

    #[test]
    fn a_name_is_cut_between_characters_and_a_scope_closes_itself_alone() {
        let long = format!("a{}", "é".repeat(150));
        assert_eq!(shortened(&long), format!("a{}", "é".repeat(99)));
        let mut audit = Audit::new(Severities::default());
        let [outer, inner] = ["x", "x"].map(|name| audit.open_scope(name));
        audit.close_scope(&outer);
        assert_eq!(audit.open_scopes.len(), 1);
        assert!(Arc::ptr_eq(&audit.open_scopes[0], &inner));
    }
}
