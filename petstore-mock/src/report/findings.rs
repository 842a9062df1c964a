//! All findings with their breaches, in bounded memory.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    breach::{Breach, Ruling},
    client::Client,
    evidence::Evidence,
    facts::Facts,
    finding::{Finding, ReportedClient},
    rule::{Rule, Severities, Severity},
};

/// The maximum number of findings. Further breaches are only counted.
const MAX_FINDINGS: usize = 2_000;
/// The maximum number of shown breaches of one finding, and of breaches that can continue.
const MAX_SHOWN: usize = 10;
const MAX_CONTINUED: usize = 64;
/// The maximum number of shown breaches of all findings, beyond the first one of each.
const MAX_SHOWN_TOGETHER: usize = 1_000;
/// The number of requests that are shown as context after a breach.
const SHOWN_AFTER: usize = 2;

/// The findings. They outlive the clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    severities: Severities,
    /// By client and rule.
    listed: BTreeMap<(u64, Rule), Breaches>,
    /// The number of shown breaches beyond the first ones.
    shown: usize,
    /// The number of breaches that belong to no listed finding, by severity.
    unlisted: [u64; 3],
}

/// The breaches of one rule by one client.
#[derive(Clone, Debug)]
struct Breaches {
    severity: Severity,
    scope: Arc<str>,
    client: ReportedClient,
    count: u64,
    /// The first breaches.
    shown: Vec<ShownBreach>,
    /// The ids of the last breaches. A further request of one of these breaches does not count as
    /// another breach.
    ids: VecDeque<u64>,
}

/// A breach with its context.
#[derive(Clone, Debug)]
struct ShownBreach {
    breach: Breach,
    before: Vec<Arc<Facts>>,
    after: Vec<Arc<Facts>>,
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

    pub(super) const fn unlisted(&self) -> [u64; 3] {
        self.unlisted
    }

    /// Removes all findings.
    pub(super) fn clear(&mut self) {
        *self = Self::new(std::mem::take(&mut self.severities));
    }

    /// Adds a request as context after the last breaches of its client.
    pub(super) fn show_after(&mut self, client: u64, request: &Arc<Facts>) {
        if self.listed.is_empty() {
            return;
        }
        let of_client = self.listed.range_mut((client, Rule::FIRST)..);
        for ((id, _), breaches) in of_client {
            if *id != client {
                break;
            }
            breaches.show_after(request);
        }
    }

    /// Adds what the rules found in the requests of a client. Empties `found`.
    pub(super) fn add(&mut self, id: u64, client: &Client, scope: &Arc<str>, found: &mut Ruling) {
        // Nearly every request ends here.
        if found.is_empty() {
            return;
        }
        for (rule, breach) in found.take_breaches() {
            self.add_breach(id, client, scope, rule, breach);
        }
        for note in found.take_notes() {
            let known = self.listed.get_mut(&(id, note.rule()));
            match known.and_then(Breaches::only_shown) {
                Some(breach) => breach.push(note.request()),
                None => self.add_breach(id, client, scope, note.rule(), note.breach()),
            }
        }
    }

    fn add_breach(
        &mut self,
        id: u64,
        client: &Client,
        scope: &Arc<str>,
        rule: Rule,
        breach: Breach,
    ) {
        let Some(severity) = rule.severity(&self.severities) else {
            return;
        };
        let is_full = self.listed.len() >= MAX_FINDINGS;
        if is_full && !self.listed.contains_key(&(id, rule)) {
            self.unlisted[severity as usize] += 1;
            return;
        }
        let new = || Breaches::new(severity, scope, client.reported());
        let breaches = self.listed.entry((id, rule)).or_insert_with(new);
        let before = breaches.shown.len();
        let may_show = before == 0 || self.shown < MAX_SHOWN_TOGETHER;
        breaches.add(breach, client.recent(), may_show);
        if before > 0 {
            self.shown += breaches.shown.len() - before;
        }
    }

    /// Returns the findings, the most severe first. `mask` masks the keys in a text.
    pub(super) fn list(&self, mask: &impl Fn(&str) -> String) -> Vec<Finding> {
        let mut findings = Vec::with_capacity(self.listed.len());
        for ((_, rule), breaches) in &self.listed {
            findings.push(breaches.finding(*rule, mask));
        }
        findings.sort_by_key(|it| (std::cmp::Reverse(it.severity), it.rule, it.first_request()));
        findings
    }
}

impl Breaches {
    fn new(severity: Severity, scope: &Arc<str>, client: &ReportedClient) -> Self {
        Self {
            severity,
            scope: Arc::clone(scope),
            client: client.clone(),
            count: 0,
            shown: Vec::new(),
            ids: VecDeque::new(),
        }
    }

    /// Adds a breach with the requests before it, or continues a known one.
    fn add(&mut self, breach: Breach, before: &VecDeque<Arc<Facts>>, may_show: bool) {
        if self.ids.contains(&breach.id()) {
            let mut shown = self.shown.iter_mut();
            if let Some(known) = shown.find(|it| it.breach.id() == breach.id()) {
                known.breach.extend(breach);
            }
            return;
        }
        self.count += 1;
        if self.ids.len() == MAX_CONTINUED {
            self.ids.pop_front();
        }
        self.ids.push_back(breach.id());
        if may_show && self.shown.len() < MAX_SHOWN {
            self.shown.push(ShownBreach {
                before: before.iter().cloned().collect(),
                after: Vec::new(),
                breach,
            });
        }
    }

    /// Returns the breach of a rule that counts once per client.
    fn only_shown(&mut self) -> Option<&mut Breach> {
        match &mut *self.shown {
            [only] => Some(&mut only.breach),
            _ => None,
        }
    }

    fn show_after(&mut self, request: &Arc<Facts>) {
        for shown in &mut self.shown {
            if shown.after.len() < SHOWN_AFTER {
                shown.after.push(Arc::clone(request));
            }
        }
    }

    fn finding(&self, rule: Rule, mask: &impl Fn(&str) -> String) -> Finding {
        let evidence = self.shown.iter().map(|shown| {
            // Notices are shown without context.
            let (before, after) = if self.severity == Severity::Notice {
                (&[][..], &[][..])
            } else {
                (&*shown.before, &*shown.after)
            };
            Evidence::new(&shown.breach, before, after, mask)
        });
        let mut client = self.client.clone();
        client.user_agent = client.user_agent.as_deref().map(mask);
        Finding {
            rule,
            severity: self.severity,
            scope: mask(&self.scope).into(),
            client,
            count: self.count,
            source: rule.about().source,
            advice: rule.about().advice,
            evidence: evidence.collect(),
        }
    }
}
