//! The report as a value: what was found, and the two verdicts that are drawn from it. How it is
//! written is left to `write`.

use std::fmt;

use super::{
    finding::{Finding, Severity},
    write,
};

/// What a client did that the specification forbids, that does harm, or that could be better.
///
/// A client is known by its key: two processes with one key are one client.
///
/// ```
/// # use petstore_mock::MockServer;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// let url = format!("{}/pets?api_key=free-key", server.url());
/// reqwest::get(url).await?;
///
/// let report = server.report();
/// assert_eq!(report.violations().next().map(|one| one.rule()), Some("key-in-url"));
/// println!("{report}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    requests: u64,
    /// Of every rule, broken or not, the worst first.
    rules: Vec<Finding>,
}

impl Report {
    pub(super) fn new(requests: u64, mut rules: Vec<Finding>) -> Self {
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.severity()));
        Self { requests, rules }
    }

    /// Returns how many requests it is about.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns every rule, the worst first, also those that were kept.
    #[must_use]
    pub fn rules(&self) -> &[Finding] {
        &self.rules
    }

    /// Returns the rules that were broken, the worst first.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.rules.iter().filter(|rule| rule.count() > 0)
    }

    /// Returns the rules that were broken and whose breach is a violation.
    pub fn violations(&self) -> impl Iterator<Item = &Finding> {
        self.of(Severity::Violation)
    }

    /// Returns the rules that were broken and whose breach is a warning.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.of(Severity::Warning)
    }

    /// Returns the rules that were broken and whose breach is a notice.
    pub fn notices(&self) -> impl Iterator<Item = &Finding> {
        self.of(Severity::Notice)
    }

    /// Returns whether nothing as bad as this, or worse, was found.
    #[must_use]
    pub fn is_free_of(&self, severity: Severity) -> bool {
        self.findings().all(|finding| finding.severity() < severity)
    }

    /// Returns whether there is neither a violation nor a warning. Notices don't count.
    #[must_use]
    pub fn is_compliant(&self) -> bool {
        self.is_free_of(Severity::Warning)
    }

    /// Fails unless the client is compliant.
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
        write::summary(self)
    }

    /// Returns the report as text, as its `Display` does.
    #[must_use]
    pub fn to_text(&self) -> String {
        write::text(self)
    }

    /// Returns the report as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        write::json(self)
    }

    /// Returns the report as JUnit's XML: a test case for each rule, failed where a violation or a
    /// warning was found.
    #[must_use]
    pub fn to_junit(&self) -> String {
        write::junit(self)
    }

    /// Returns the report as Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        write::markdown(self)
    }

    /// Returns the report as a page: one HTML document that needs nothing else, light or dark as its
    /// reader prefers.
    #[must_use]
    pub fn to_html(&self) -> String {
        write::page(self)
    }

    fn of(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings().filter(move |finding| finding.severity() == severity)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}
