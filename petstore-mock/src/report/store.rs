//! The findings so far, each with its evidence.

use std::collections::HashMap;

use super::{
    client::Client,
    finding::{Evidence, Finding, Role},
    observed::ObservedExchange,
    rule::{Rule, Severities, Severity},
    rules::Offence,
    value::{Report, ScopeTally},
};

/// How many findings are kept. Further breaches are counted.
const MAX_FINDINGS: usize = 2_000;
/// How many breaches a finding shows; all are counted.
const MAX_EVIDENCE: usize = 10;

/// A finding for each rule and client.
#[derive(Debug, Default)]
pub(super) struct FindingStore {
    severities: Severities,
    findings: Vec<Finding>,
    places: HashMap<(Rule, u64), usize>,
    /// Breaches beyond the findings that are kept, by severity.
    unlisted: [u64; 3],
}

impl FindingStore {
    pub(super) fn new(severities: Severities) -> Self {
        Self { severities, ..Self::default() }
    }

    /// Adds a breach of a rule by the client of this number, or one more request to a known breach.
    pub(super) fn add(
        &mut self,
        id: u64,
        client: &mut Client,
        exchange: &ObservedExchange,
        offence: Offence,
    ) {
        let Some(severity) = self.severities.of(offence.rule) else { return };
        let Some(place) = self.place(offence.rule, id, client, severity) else {
            self.unlisted[severity as usize] += u64::from(!offence.goes_on);
            return;
        };
        let finding = &mut self.findings[place];
        let is_notice = severity == Severity::Notice;
        let known = finding.evidence.iter_mut().find(|one| one.began == offence.began);
        if let Some(evidence) = known {
            evidence.offences += 1;
            if !offence.text.is_empty() {
                (evidence.text, evidence.by) = (offence.text, offence.by);
            }
            if !is_notice {
                evidence.add(exchange.as_evidence(Role::Offence));
            }
            return;
        }
        if offence.goes_on {
            return;
        }
        finding.count += 1;
        if finding.evidence.len() == MAX_EVIDENCE {
            return;
        }
        let mut evidence = evidence(exchange, offence);
        if !is_notice {
            client.recent.iter().for_each(|request| evidence.add(request.clone()));
            let began = evidence.began;
            client.open_evidence.push((finding.rule, began, Client::SHOWN_AFTER));
        }
        finding.evidence.push(evidence);
    }

    /// Takes back a breach that turned out to be none.
    pub(super) fn withdraw(&mut self, id: u64, rule: Rule, began: u64) {
        let Some(place) = self.places.get(&(rule, id)) else { return };
        let finding = &mut self.findings[*place];
        finding.count = finding.count.saturating_sub(1);
        finding.evidence.retain(|evidence| evidence.began != began);
    }

    /// Shows a request as one that came after a breach.
    pub(super) fn show_after(
        &mut self,
        id: u64,
        rule: Rule,
        began: u64,
        exchange: &ObservedExchange,
    ) {
        let Some(place) = self.places.get(&(rule, id)) else { return };
        let mut evidence = self.findings[*place].evidence.iter_mut();
        if let Some(evidence) = evidence.find(|evidence| evidence.began == began) {
            evidence.add(exchange.as_evidence(Role::After));
        }
    }

    /// Returns the report; `mask` takes the keys out of a text.
    pub(super) fn report(
        &self,
        requests: u64,
        scopes: Vec<ScopeTally>,
        mask: impl Fn(&str) -> String,
    ) -> Report {
        let masked = |finding: &Finding| {
            let mut finding = finding.clone();
            finding.scope = mask(&finding.scope).into();
            finding.client.user_agent = finding.client.user_agent.as_deref().map(&mask);
            for evidence in &mut finding.evidence {
                evidence.text = mask(&evidence.text);
                for request in &mut evidence.requests {
                    request.path = mask(&request.path).into();
                }
            }
            finding
        };
        let findings = self.findings.iter().filter(|finding| finding.count > 0).map(masked);
        Report::new(requests, scopes, findings.collect(), self.severities, self.unlisted)
    }

    pub(super) fn forget(&mut self) {
        *self = Self::new(self.severities);
    }

    /// Returns the place of a finding, which is made if there is room.
    fn place(&mut self, rule: Rule, id: u64, client: &Client, severity: Severity) -> Option<usize> {
        if let Some(place) = self.places.get(&(rule, id)) {
            return Some(*place);
        }
        if self.findings.len() == MAX_FINDINGS {
            return None;
        }
        self.findings.push(Finding {
            rule,
            severity,
            scope: client.scope.clone(),
            client: client.reported.clone(),
            count: 0,
            source: rule.about().source,
            advice: rule.about().advice,
            evidence: Vec::new(),
        });
        let place = self.findings.len() - 1;
        self.places.insert((rule, id), place);
        Some(place)
    }
}

/// Returns the evidence of a breach that an exchange committed.
fn evidence(exchange: &ObservedExchange, offence: Offence) -> Evidence {
    let Offence { began, told, text, by, added, causes, .. } = offence;
    let request = exchange.as_evidence(Role::Offence);
    let (at, requests) = (request.at, Vec::new());
    let mut evidence =
        Evidence { at, told, text, by, added, offences: 1, omitted: 0, requests, began };
    causes.into_iter().chain([request]).for_each(|request| evidence.add(request));
    evidence
}
