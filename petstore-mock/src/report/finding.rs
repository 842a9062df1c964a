//! The content of the report: findings and their evidence. Their JSON form is that of the report.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use serde::Serialize;
use strum::VariantArray;

use super::{
    request::{JudgedRequest, Role, as_instant, push_bounded},
    rule::{About, Rule, Severities, Severity},
};
use crate::{clock::seconds, exchange::Moment, quota::Plan};

/// The client of a finding: the requests with one key and one `User-Agent` in one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReportedClient {
    /// The name of its key, or its number; never the key itself.
    pub key: String,
    /// The plan of its key; `None` without a valid key.
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

/// The evidence of a breach: what the service announced, what the client did, and the requests
/// concerned.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Evidence {
    /// When the first request that broke the rule arrived.
    #[serde(serialize_with = "as_instant")]
    pub(super) at: Moment,
    /// What the client ignored, for example a `Retry-After`.
    pub told: Option<String>,
    /// What happened, in one sentence.
    pub text: String,
    /// How much too early a request arrived, or how long after the end of the previous one.
    #[serde(rename = "bySeconds", serialize_with = "seconds::serialize")]
    pub by: Option<Duration>,
    /// The ids of duplicate pets.
    pub added: Vec<i64>,
    /// The number of requests that broke the rule.
    pub offences: u64,
    /// The number of omitted requests.
    pub omitted: u64,
    /// The requests concerned and some around them, by number.
    pub requests: Vec<JudgedRequest>,
    /// Identifies the breach within its rule and client, because it may continue.
    #[serde(skip)]
    pub(super) breach: u64,
    /// The number of later requests to show as context.
    #[serde(skip)]
    pub(super) open: u32,
}

impl Evidence {
    /// The maximum number of shown requests.
    const MAX_REQUESTS: usize = 14;
    /// The index of the request that is omitted to make room.
    const OMITTED_AT: usize = 8;

    /// Creates evidence that a request is part of a breach. Without a text, it only adds the
    /// request to existing evidence.
    pub(super) fn new(breach: u64, request: &JudgedRequest, text: String) -> Self {
        Self {
            at: request.arrived,
            told: None,
            text,
            by: None,
            added: Vec::new(),
            offences: 1,
            omitted: 0,
            requests: vec![request.clone()],
            breach,
            open: 0,
        }
    }

    /// Adds requests, by number. An existing one gets the new role if it is concerned.
    pub(super) fn show(mut self, requests: impl IntoIterator<Item = JudgedRequest>) -> Self {
        requests.into_iter().for_each(|request| self.add(request));
        self
    }

    fn add(&mut self, request: JudgedRequest) {
        match self
            .requests
            .binary_search_by_key(&request.number, |one| one.number)
        {
            Ok(place) if request.role.is_concerned() => self.requests[place] = request,
            Ok(_) => {}
            Err(place) => self.requests.insert(place, request),
        }
        if self.requests.len() > Self::MAX_REQUESTS {
            self.requests.remove(Self::OMITTED_AT);
            self.omitted += 1;
        }
    }

    /// Adds later evidence of the same breach. A notice shows only its first request.
    fn extend(&mut self, more: Self, is_notice: bool) {
        self.offences += more.offences;
        if is_notice {
            return;
        }
        if !more.text.is_empty() {
            (self.text, self.by) = (more.text, more.by);
        }
        more.requests
            .into_iter()
            .for_each(|request| self.add(request));
    }
}

/// The result of the rules for one exchange.
#[derive(Debug, Default)]
pub(super) struct Ruling {
    pub(super) breaches: Vec<(Rule, Evidence)>,
    /// A breach of `steady-retry` that turned out to be none, or part of a more severe breach.
    pub(super) withdrawn: Option<u64>,
}

impl Ruling {
    pub(super) fn add(&mut self, rule: Rule, evidence: Evidence) {
        self.breaches.push((rule, evidence));
    }

    /// Adds a request to a breach that counts once per client.
    pub(super) fn note(&mut self, rule: Rule, request: &JudgedRequest, text: impl Into<String>) {
        self.add(rule, Evidence::new(0, request, text.into()));
    }
}

/// A rule that a client broke, with the number of breaches and the evidence.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The severity.
    pub severity: Severity,
    /// The scope, usually a test.
    pub scope: Arc<str>,
    /// The client that broke the rule.
    pub client: ReportedClient,
    /// The number of breaches. A series of retries counts once, and so does a period in which the
    /// client should have waited.
    pub count: u64,
    /// The section of the specification or an RFC on which the rule is based.
    pub source: &'static str,
    /// What the client should do instead.
    pub advice: &'static str,
    /// The evidence of the first 10 breaches; for a notice, of the first one.
    pub evidence: Vec<Evidence>,
    /// The last breaches. A request that belongs to one of them does not count again.
    #[serde(skip)]
    breaches: VecDeque<u64>,
}

impl Finding {
    /// The maximum number of shown breaches, and of breaches that can continue. All are counted.
    const MAX_EVIDENCE: usize = 10;
    const MAX_BREACHES: usize = 64;
    /// The number of requests that are shown as context after a breach.
    const SHOWN_AFTER: u32 = 2;

    pub(super) fn new(
        rule: Rule,
        severity: Severity,
        scope: &Arc<str>,
        client: &ReportedClient,
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
            breaches: VecDeque::new(),
        }
    }

    /// Adds a breach, with the requests before it as context, or a request to a known breach.
    pub(super) fn add(&mut self, mut evidence: Evidence, before: &VecDeque<JudgedRequest>) {
        let is_notice = self.severity == Severity::Notice;
        if self.breaches.contains(&evidence.breach) {
            let mut shown = self.evidence.iter_mut();
            if let Some(known) = shown.find(|known| known.breach == evidence.breach) {
                known.extend(evidence, is_notice);
            }
            return;
        }
        self.count += 1;
        push_bounded(&mut self.breaches, evidence.breach, Self::MAX_BREACHES);
        if self.evidence.len() < Self::MAX_EVIDENCE {
            if !is_notice {
                evidence = evidence.show(before.iter().cloned());
                evidence.open = Self::SHOWN_AFTER;
            }
            self.evidence.push(evidence);
        }
    }

    /// Adds a request as context after the last breaches.
    pub(super) fn show_after(&mut self, request: &JudgedRequest) {
        for evidence in self
            .evidence
            .iter_mut()
            .filter(|evidence| evidence.open > 0)
        {
            evidence.open -= 1;
            evidence.add(request.with_role(Role::After));
        }
    }

    /// Returns the number of the first shown request.
    pub(super) fn first_request(&self) -> Option<u64> {
        self.evidence
            .first()
            .map(|evidence| evidence.requests[0].number)
    }

    /// Withdraws a breach.
    pub(super) fn withdraw(&mut self, breach: u64) {
        self.count = self.count.saturating_sub(1);
        self.breaches.retain(|one| *one != breach);
        self.evidence.retain(|evidence| evidence.breach != breach);
    }
}

/// The compliance report: which rules clients broke, how often, and with which requests.
///
/// Scope, key and `User-Agent` identify a client, so two programs with one key are two clients.
/// Findings survive [`MockServer::reset`](crate::MockServer::reset).
///
/// ```
/// # use petstore_mock::{MockServer, Rule, Severity};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// let url = format!("{}/pets?api_key=free-key", server.url());
/// reqwest::get(url).await?;
///
/// let report = server.report();
/// assert_eq!(report.of(Severity::Violation).next().map(|one| one.rule), Some(Rule::KeyInUrl));
/// println!("{report}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    pub(super) requests: u64,
    /// The scopes in order of their first requests, with their numbers of requests.
    pub(super) scopes: Vec<(Arc<str>, u64)>,
    /// The most severe first.
    pub(super) findings: Vec<Finding>,
    pub(super) severities: Severities,
    /// The number of breaches beyond the kept findings, by severity.
    pub(super) unlisted: [u64; 3],
}

impl Report {
    /// Returns the number of judged requests.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the scopes in order of their first requests, with their numbers of requests.
    pub fn scopes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.scopes
            .iter()
            .map(|(scope, requests)| (&**scope, *requests))
            .filter(|it| it.1 > 0)
    }

    /// Returns the findings, the most severe first: one for each rule and client.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter()
    }

    /// Returns the findings with this severity.
    pub fn of(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |finding| finding.severity == severity)
    }

    /// Returns whether there is no finding with this or a higher severity.
    #[must_use]
    pub fn is_free_of(&self, severity: Severity) -> bool {
        Severity::VARIANTS
            .iter()
            .all(|one| *one < severity || self.count(*one) == 0)
    }

    /// Returns whether there are neither violations nor warnings. Notices don't count.
    #[must_use]
    pub fn is_compliant(&self) -> bool {
        self.is_free_of(Severity::Warning)
    }

    /// Panics unless the clients are compliant.
    ///
    /// # Panics
    ///
    /// If there is a violation or a warning. The message is the report.
    #[track_caller]
    #[expect(clippy::panic, reason = "an assertion panics")]
    pub fn assert_compliant(&self) {
        if !self.is_compliant() {
            panic!("the client is not compliant\n\n{self}");
        }
    }

    /// Returns the number of breaches with this severity.
    pub(super) fn count(&self, severity: Severity) -> u64 {
        let listed: u64 = self.of(severity).map(|finding| finding.count).sum();
        listed + self.unlisted[severity as usize]
    }

    /// Returns the rules that are not off.
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        Rule::all()
            .iter()
            .copied()
            .filter(|rule| rule.severity(&self.severities).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::corpus::judge;
    use super::*;

    fn finding(lines: &[String]) -> Finding {
        judge(lines.iter().map(String::as_str))
            .findings()
            .next()
            .unwrap()
            .clone()
    }

    #[test]
    fn evidence_shows_some_requests_and_counts_the_others() {
        let line = |n| format!("{n}+0.003 1 GET /v1/pets?limit={n} 429 wait={}", 60 - n);
        for (requests, omitted) in [(41, "27 requests"), (15, "1 request")] {
            let finding = finding(&(0..requests).map(line).collect::<Vec<_>>());
            let [evidence] = &*finding.evidence else {
                panic!("{finding:?}")
            };
            assert_eq!((finding.count, evidence.offences), (1, requests - 1));
            assert_eq!(evidence.requests.len(), Evidence::MAX_REQUESTS);
            assert_eq!(evidence.requests.len() as u64 + evidence.omitted, requests);
            let text = finding.to_string();
            assert!(text.contains(&format!("  {omitted} not shown\n")), "{text}");
        }
    }

    #[test]
    fn the_first_breaches_are_shown_and_one_of_them_can_be_taken_back() {
        let post = |n: u64| {
            let status = if n.is_multiple_of(2) { 500 } else { 201 };
            format!(
                "{n}+0.003 1 POST /v1/pets {status} body={{\"name\":\"{}\"}}",
                n / 2
            )
        };
        let mut finding = finding(&(0..24).map(post).collect::<Vec<_>>());
        assert_eq!(
            (finding.rule, finding.count, finding.evidence.len()),
            (Rule::RepeatedPost, 12, 10)
        );
        assert!(
            finding.to_string().contains("\n  and 2 more\n"),
            "{finding}"
        );
        let [first, second] = [0, 1].map(|place| finding.evidence[place].breach);
        finding.withdraw(first);
        assert_eq!((finding.count, finding.evidence.len()), (11, 9));
        assert_eq!(finding.breaches.front(), Some(&second));
    }
}
