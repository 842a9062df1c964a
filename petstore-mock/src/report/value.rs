//! The report as a value: the findings by scope, and the verdict that is drawn from them.

use std::{fmt, sync::Arc};

use serde_json::{Map, json};

use super::{
    finding::Finding,
    render,
    rule::{Rule, Severities, Severity},
};

/// What the clients did that the specification forbids, that does harm, or that could be better.
///
/// A client is known by its scope, its key and its `User-Agent`: two programs with one key are two
/// clients. What was found outlives [`MockServer::reset`](crate::MockServer::reset).
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
    requests: u64,
    scopes: Vec<ScopeTally>,
    findings: Vec<Finding>,
    severities: Severities,
    unlisted: [u64; 3],
}

/// A scope, and how many requests belong to it.
#[derive(Clone, Debug)]
pub(super) struct ScopeTally {
    pub(super) name: Arc<str>,
    pub(super) requests: u64,
}

impl Report {
    pub(super) fn new(
        requests: u64,
        scopes: Vec<ScopeTally>,
        mut findings: Vec<Finding>,
        severities: Severities,
        unlisted: [u64; 3],
    ) -> Self {
        findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.rule));
        Self { requests, scopes, findings, severities, unlisted }
    }

    /// Returns how many requests it is about.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the scopes that requests belong to, in the order of their first requests, each with
    /// the number of these.
    pub fn scopes(&self) -> impl Iterator<Item = (&str, u64)> {
        let used = self.scopes.iter().filter(|scope| scope.requests > 0);
        used.map(|scope| (&*scope.name, scope.requests))
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
        let worse = [Severity::Notice, Severity::Warning, Severity::Violation];
        worse.into_iter().filter(|one| *one >= severity).all(|one| self.count(one) == 0)
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
    /// With the report as its message, where there is a violation or a warning.
    #[track_caller]
    #[expect(clippy::panic, reason = "that is what an assertion does")]
    pub fn assert_compliant(&self) {
        if !self.is_compliant() {
            panic!("the client is not compliant\n\n{self}");
        }
    }

    /// Returns the report in one line, without a line break at its end.
    #[must_use]
    pub fn summary_line(&self) -> String {
        render::text::summary(self)
    }

    /// Returns the report as text, as its `Display` does.
    #[must_use]
    pub fn to_text(&self) -> String {
        render::text::text(self)
    }

    /// Returns the report as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let scope = |(name, requests)| json!({"name": name, "requests": requests});
        let about = |rule: Rule| (rule.to_string(), json!(rule.about()));
        let value = json!({
            "compliant": self.is_compliant(),
            "requests": self.requests,
            "violations": self.count(Severity::Violation),
            "warnings": self.count(Severity::Warning),
            "notices": self.count(Severity::Notice),
            "scopes": self.scopes().map(scope).collect::<Vec<_>>(),
            "findings": self.findings,
            "rules": self.rules().map(about).collect::<Map<_, _>>(),
        });
        value.to_string()
    }

    /// Returns the report as JUnit's XML: a test suite for each scope and a test case for each rule,
    /// failed where a violation or a warning was found.
    #[must_use]
    pub fn to_junit(&self) -> String {
        render::junit::junit(self)
    }

    /// Returns the report as Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        render::markdown::markdown(self)
    }

    /// Returns how often rules were broken with this severity.
    pub(super) fn count(&self, severity: Severity) -> u64 {
        let listed: u64 = self.of(severity).map(|finding| finding.count).sum();
        listed + self.unlisted(severity)
    }

    /// Returns how many breaches there were beyond the findings that are kept.
    pub(super) const fn unlisted(&self, severity: Severity) -> u64 {
        self.unlisted[severity as usize]
    }

    /// Returns the rules that are not off.
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        Rule::all().iter().copied().filter(|rule| self.severities.of(*rule).is_some())
    }

    fn of(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.severity == severity)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}
