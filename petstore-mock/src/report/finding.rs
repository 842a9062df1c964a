//! What the report consists of: findings, and the evidence for each. Their JSON is that of the report.

use std::{
    collections::VecDeque,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, Serializer};
use strum::VariantArray;

use super::{
    request::{JudgedRequest, push_bounded},
    rule::{About, Rule, Severities, Severity},
};
use crate::plan::Plan;

/// The client that a finding is about: requests with one key and one `User-Agent`, in one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReportedClient {
    /// The name of its key, or the number if it has none; never the key itself.
    pub key: String,
    /// The plan of its key; nothing without a valid key.
    #[serde(serialize_with = "as_text")]
    pub plan: Option<Plan>,
    /// Its `User-Agent`.
    pub user_agent: Option<String>,
}

impl fmt::Display for ReportedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = self.user_agent.as_deref().unwrap_or("no User-Agent");
        match self.plan {
            Some(plan) => write!(f, "key {} ({plan}), {agent}", self.key),
            None => write!(f, "{}, {agent}", self.key),
        }
    }
}

/// One breach of a rule: what the client was told, what it did, and the requests concerned.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Evidence {
    /// When the first request that breaks the rule arrived, on the mock's clock.
    #[serde(serialize_with = "as_instant")]
    pub at: SystemTime,
    /// What the client was told before, if that is what it ignored.
    pub told: Option<String>,
    /// What happened, in a sentence.
    pub text: String,
    /// How much too early a request came, or how long after the end of the one before.
    #[serde(rename = "bySeconds", serialize_with = "as_seconds")]
    pub by: Option<Duration>,
    /// The ids of the pets that were added, if they are the same animal.
    pub added: Vec<i64>,
    /// How many requests broke the rule here.
    pub offences: u64,
    /// How many requests of a long row are left out.
    pub omitted: u64,
    /// The requests concerned, and some around them, by number.
    pub requests: Vec<JudgedRequest>,
    /// Identifies the breach among those of one rule and client, since it may go on.
    #[serde(skip)]
    pub(super) breach: u64,
}

impl Evidence {
    /// How many requests are shown at most.
    const MAX_REQUESTS: usize = 14;
    /// The index of the request that is left out to make room.
    const OMITTED_AT: usize = 8;

    /// Returns the evidence that a request is, or is part of, a breach. Without a text it adds only the
    /// request to the evidence that is there.
    pub(super) fn new(breach: u64, request: &JudgedRequest, text: String) -> Self {
        Self {
            at: UNIX_EPOCH + request.arrived.at,
            told: None,
            text,
            by: None,
            added: Vec::new(),
            offences: 1,
            omitted: 0,
            requests: vec![request.clone()],
            breach,
        }
    }

    /// Returns the numbers of the requests concerned, without those that are shown for the context.
    pub fn concerned(&self) -> impl Iterator<Item = u64> {
        self.requests.iter().filter(|one| one.role.is_concerned()).map(|one| one.number)
    }

    /// Adds requests, in the order of their numbers. One that is there already gets the new role if it
    /// is concerned.
    pub(super) fn show(mut self, requests: impl IntoIterator<Item = JudgedRequest>) -> Self {
        requests.into_iter().for_each(|request| self.add(request));
        self
    }

    pub(super) fn add(&mut self, request: JudgedRequest) {
        match self.requests.binary_search_by_key(&request.number, |one| one.number) {
            Ok(place) if request.role.is_concerned() => self.requests[place] = request,
            Ok(_) => {}
            Err(place) => self.requests.insert(place, request),
        }
        if self.requests.len() > Self::MAX_REQUESTS {
            self.requests.remove(Self::OMITTED_AT);
            self.omitted += 1;
        }
    }

    /// Adds later evidence of the same breach; a notice is about its first request.
    pub(super) fn extend(&mut self, more: Self, is_notice: bool) {
        self.offences += more.offences;
        if is_notice {
            return;
        }
        if !more.text.is_empty() {
            (self.text, self.by) = (more.text, more.by);
        }
        more.requests.into_iter().for_each(|request| self.add(request));
    }
}

/// What the rules found in one exchange.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    pub(super) breaches: Vec<(Rule, Evidence)>,
    /// The breach of `steady-retry` that turned out to be none, or part of a more severe one.
    pub(super) withdrawn: Option<u64>,
}

impl Judgement {
    pub(super) fn add(&mut self, rule: Rule, evidence: Evidence) {
        self.breaches.push((rule, evidence));
    }

    /// Adds a request to a breach that counts once a client.
    pub(super) fn note(&mut self, rule: Rule, request: &JudgedRequest, text: impl Into<String>) {
        self.add(rule, Evidence::new(0, request, text.into()));
    }
}

/// A rule that one client broke, how often, and the evidence.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How severe it is.
    pub severity: Severity,
    /// The scope, or the test, that it belongs to.
    pub scope: Arc<str>,
    /// The client that broke the rule.
    pub client: ReportedClient,
    /// How often the rule was broken. A row of retries, and a time in which the client was told to wait,
    /// count once however many requests they had.
    pub count: u64,
    /// The section of the specification, or of an RFC, that the rule rests on.
    pub source: &'static str,
    /// What the client should do instead.
    pub advice: &'static str,
    /// The evidence for the first 10 times; of a notice, for the first time.
    pub evidence: Vec<Evidence>,
    /// The number of the first request that broke the rule.
    #[serde(skip)]
    pub(super) first_request: u64,
    /// The last breaches: a request that belongs to one of them does not count again.
    #[serde(skip)]
    breaches: VecDeque<u64>,
}

impl Finding {
    /// How many breaches are shown, and how many are known if they go on; all are counted.
    const MAX_EVIDENCE: usize = 10;
    const MAX_BREACHES: usize = 64;

    /// Returns a finding about the rule that a request broke first.
    pub(super) fn new(
        rule: Rule,
        severity: Severity,
        scope: &Arc<str>,
        client: &ReportedClient,
        evidence: &Evidence,
    ) -> Self {
        let About { source, advice, .. } = rule.about();
        Self {
            rule,
            severity,
            scope: Arc::clone(scope),
            client: client.clone(),
            count: 0,
            source,
            advice,
            evidence: Vec::new(),
            first_request: evidence.requests.first().map_or(0, |request| request.number),
            breaches: VecDeque::new(),
        }
    }

    pub(super) fn knows(&self, breach: u64) -> bool {
        self.breaches.contains(&breach)
    }

    /// Adds a breach, or a request to a known breach.
    pub(super) fn add(&mut self, evidence: Evidence) {
        if self.knows(evidence.breach) {
            let is_notice = self.severity == Severity::Notice;
            if let Some(known) = self.evidence_of(evidence.breach) {
                known.extend(evidence, is_notice);
            }
            return;
        }
        self.count += 1;
        push_bounded(&mut self.breaches, evidence.breach, Self::MAX_BREACHES);
        if self.evidence.len() < Self::MAX_EVIDENCE {
            self.evidence.push(evidence);
        }
    }

    /// Takes back a breach.
    pub(super) fn withdraw(&mut self, breach: u64) {
        self.count = self.count.saturating_sub(1);
        self.breaches.retain(|one| *one != breach);
        self.evidence.retain(|evidence| evidence.breach != breach);
    }

    /// Returns the evidence of a breach, if it is shown.
    pub(super) fn evidence_of(&mut self, breach: u64) -> Option<&mut Evidence> {
        self.evidence.iter_mut().find(|evidence| evidence.breach == breach)
    }
}

/// What the clients did that the specification forbids, that does harm, or that could be better.
///
/// A client is known by its scope, its key and its `User-Agent`: two programs with one key are two
/// clients. Findings survive [`MockServer::reset`](crate::MockServer::reset).
///
/// ```
/// # use petstore_mock::{MockServer, Rule};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// let url = format!("{}/pets?api_key=free-key", server.url());
/// reqwest::get(url).await?;
///
/// let report = server.report();
/// assert_eq!(report.violations().next().map(|one| one.rule), Some(Rule::KeyInUrl));
/// println!("{report}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    pub(super) requests: u64,
    /// The scopes, in the order of their first requests, with the number of these.
    pub(super) scopes: Vec<(Arc<str>, u64)>,
    /// The most severe first.
    pub(super) findings: Vec<Finding>,
    pub(super) severities: Severities,
    /// How many breaches there were beyond the findings that are kept, by severity.
    pub(super) unlisted: [u64; 3],
}

impl Report {
    /// Returns the number of requests that were judged.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the scopes that requests belong to, in the order of their first requests, each with
    /// the number of these.
    pub fn scopes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.scopes.iter().map(|(scope, requests)| (&**scope, *requests)).filter(|it| it.1 > 0)
    }

    /// Returns what was found, the most severe first: a finding for each rule and client.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter()
    }

    /// Returns the findings that are violations.
    pub fn violations(&self) -> impl Iterator<Item = &Finding> {
        self.of(Severity::Violation)
    }

    /// Returns the findings that are warnings.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.of(Severity::Warning)
    }

    /// Returns the findings that are notices: each counts once a client.
    pub fn notices(&self) -> impl Iterator<Item = &Finding> {
        self.of(Severity::Notice)
    }

    /// Returns whether nothing as severe as this, or more severe, was found.
    #[must_use]
    pub fn is_free_of(&self, severity: Severity) -> bool {
        Severity::VARIANTS
            .iter()
            .copied()
            .filter(|one| *one >= severity)
            .all(|one| self.count(one) == 0)
    }

    /// Returns whether there is neither a violation nor a warning. Notices don't count.
    #[must_use]
    pub fn is_compliant(&self) -> bool {
        self.is_free_of(Severity::Warning)
    }

    /// Fails unless the clients are compliant.
    ///
    /// # Panics
    ///
    /// With the report as its message, if there is a violation or a warning.
    #[track_caller]
    #[expect(clippy::panic, reason = "that is what an assertion does")]
    pub fn assert_compliant(&self) {
        if !self.is_compliant() {
            panic!("the client is not compliant\n\n{self}");
        }
    }

    /// Returns how often rules were broken with this severity.
    pub(super) fn count(&self, severity: Severity) -> u64 {
        let listed: u64 = self.of(severity).map(|finding| finding.count).sum();
        listed + self.unlisted[severity as usize]
    }

    /// Returns the rules that are not off.
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        Rule::all().iter().copied().filter(|rule| self.severities.of(*rule).is_some())
    }

    fn of(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.severity == severity)
    }
}

fn as_text<S: Serializer>(plan: &Option<Plan>, serializer: S) -> Result<S::Ok, S::Error> {
    plan.map(|plan| plan.to_string()).serialize(serializer)
}

fn as_instant<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*at))
}

fn as_seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}
