//! The findings and the report. Their JSON form is that of the report.

use std::{fmt, sync::Arc};

use serde::Serialize;

use super::{
    evidence::Evidence,
    rule::{Rule, Severities, Severity},
};
use crate::plan::Plan;

/// The key of a client that sends none.
pub(super) const NO_KEY: &str = "no key";
/// The key of a client whose key is invalid.
pub(super) const UNKNOWN_KEY: &str = "an unknown key";

/// The client of a finding: the requests with one key and one `User-Agent` in one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReportedClient {
    /// The name of its key, or its number; never the key itself.
    pub key: String,
    /// The plan of its key; `None` without a valid key, and for a key of a real service.
    pub plan: Option<Plan>,
    /// Its `User-Agent`.
    pub user_agent: Option<String>,
}

impl fmt::Display for ReportedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = self.user_agent.as_deref().unwrap_or("no User-Agent");
        match self.plan {
            Some(plan) => write!(f, "key {} ({plan}), {agent}", self.key),
            None if self.key == NO_KEY || self.key == UNKNOWN_KEY => {
                write!(f, "{}, {agent}", self.key)
            }
            None => write!(f, "key {}, {agent}", self.key),
        }
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
    /// The evidence of the first 10 breaches; of fewer if there are very many findings.
    pub evidence: Vec<Evidence>,
}

impl Finding {
    /// Returns the number of the first shown request.
    pub(super) fn first_request(&self) -> Option<u64> {
        let evidence = self.evidence.first()?;
        Some(evidence.requests.first()?.number)
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
    /// The scopes with their numbers of requests, in order of their first requests.
    pub(super) scopes: Vec<(Arc<str>, u64)>,
    /// The most severe first.
    pub(super) findings: Vec<Finding>,
    pub(super) severities: Severities,
    /// The number of breaches that belong to no kept finding, by severity.
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
        Severity::ALL
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
        Rule::ALL
            .iter()
            .copied()
            .filter(|rule| rule.severity(&self.severities).is_some())
    }
}
