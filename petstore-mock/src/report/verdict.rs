//! The report, as a program reads it, and as text and JSON.

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::{
    finding::Finding,
    rule::{Rule, Severities, Severity},
    text::count,
};
use crate::exchange::Arrival;

/// The compliance report: which rules the requests of each key broke, and with which requests.
///
/// It is a function of the recorded exchanges, so it is the same in every run. Findings survive
/// [`MockServer::reset`](crate::MockServer::reset). The guide has the [rules](crate::guide::compliance).
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
/// assert_eq!(report.of(Severity::Violation).next().map(|one| one.rule), Some(Rule::Key));
/// println!("{report}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[must_use]
pub struct Report {
    compliant: bool,
    summary: String,
    /// The numbers of findings, of which not all may be listed.
    violations: u64,
    warnings: u64,
    notices: u64,
    #[serde(flatten)]
    answers: Answers,
    /// The number of requests of each key, by its name.
    keys: BTreeMap<String, u64>,
    /// The most severe first.
    findings: Vec<Finding>,
    /// The rules that are not off.
    rules: BTreeMap<Rule, Severity>,
}

/// How the requests were answered.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Answers {
    requests: u64,
    /// Those that were answered 429.
    #[serde(rename = "answered429")]
    refused: u64,
    /// Those that were answered 5xx.
    #[serde(rename = "answered5xx")]
    failed: u64,
    /// Those whose client did not receive the whole response.
    #[serde(rename = "withoutResponse")]
    lost: u64,
    /// Those for an operation that the service does not have.
    #[serde(rename = "unknownOperation")]
    unknown: u64,
    /// The others without a valid key.
    #[serde(rename = "withoutKey")]
    strangers: u64,
}

impl Answers {
    pub(super) fn add(&mut self, arrival: &Arrival, status: Option<u16>) {
        self.requests += 1;
        self.unknown += u64::from(!arrival.is_known);
        self.strangers += u64::from(arrival.is_known && arrival.key.is_none());
        match status {
            Some(429) => self.refused += 1,
            Some(500..) => self.failed += 1,
            Some(_) => {}
            None => self.lost += 1,
        }
    }
}

/// What is wrong if no request reached the service.
#[cfg(feature = "junit")]
pub(crate) const UNREACHED: &str = "no request with a valid key reached the service";

impl Report {
    /// Creates a report of findings, of which `unlisted` are left out, by severity.
    pub(super) fn new(
        answers: Answers,
        keys: BTreeMap<String, u64>,
        severities: &Severities,
        mut findings: Vec<Finding>,
        unlisted: [u64; 3],
    ) -> Self {
        findings.sort_by_key(|it| (Reverse(it.severity), it.rule, it.first_request()));
        let [notices, warnings, violations] = [0, 1, 2].map(|severity| {
            let is_meant = |finding: &&Finding| finding.severity as usize == severity;
            findings.iter().filter(is_meant).count() as u64 + unlisted[severity]
        });
        let rules = Rule::ALL
            .iter()
            .filter_map(|rule| Some((*rule, rule.severity(severities)?)));
        let mut report = Self {
            compliant: violations == 0 && warnings == 0,
            summary: String::new(),
            violations,
            warnings,
            notices,
            answers,
            keys,
            findings,
            rules: rules.collect(),
        };
        report.summary = report.summarized();
        report
    }

    /// Returns the number of judged requests.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.answers.requests
    }

    /// Whether a request with a valid key used an operation of the service.
    #[cfg(feature = "junit")]
    pub(crate) const fn has_reached_the_service(&self) -> bool {
        self.answers.requests > self.answers.unknown + self.answers.strangers
    }

    /// Returns the findings, the most severe first.
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
        self.compliant
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

    /// Returns the last line of the report, which counts the findings, and the requests that did not
    /// succeed.
    #[must_use]
    pub fn summary_line(&self) -> String {
        self.summary.clone()
    }

    fn summarized(&self) -> String {
        let severities = Severity::ALL.iter().rev();
        let found: Vec<_> = severities
            .filter(|severity| self.count(**severity) > 0)
            .map(|severity| count(self.count(*severity), &severity.to_string()))
            .collect();
        let found = match &*found {
            [] => "nothing found".to_owned(),
            found => found.join(", "),
        };
        let requests = count(self.answers.requests, "request");
        format!("compliance: {found} in {requests}{}", self.answers)
    }

    /// Returns the report as text. The same as its `Display`.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.to_string()
    }

    /// Returns the report as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        // This cannot fail, because all keys of maps are text.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the number of findings with this severity.
    const fn count(&self, severity: Severity) -> u64 {
        match severity {
            Severity::Violation => self.violations,
            Severity::Warning => self.warnings,
            Severity::Notice => self.notices,
        }
    }

    /// Returns the names of the keys.
    #[cfg(feature = "junit")]
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    /// Returns the rules that are not off.
    #[cfg(feature = "junit")]
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        self.rules.keys().copied()
    }
}

impl fmt::Display for Answers {
    /// Writes the numbers of answers that a summary must not hide.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut answers = Vec::new();
        for (number, status) in [(self.refused, "429"), (self.failed, "5xx")] {
            match number {
                0 => {}
                number if !answers.is_empty() => answers.push(format!("{number} {status}")),
                1 => answers.push(format!("1 was answered {status}")),
                number => answers.push(format!("{number} were answered {status}")),
            }
        }
        for (number, what) in [
            (self.lost, "without a response"),
            (self.unknown, "for an unknown operation"),
            (self.strangers, "without a valid key"),
        ] {
            if number > 0 {
                answers.push(format!("{number} {what}"));
            }
        }
        match &*answers {
            [] => Ok(()),
            answers => write!(f, "; {}", answers.join(", ")),
        }
    }
}

impl fmt::Display for Report {
    /// Writes the findings, the most severe first, and then the summary in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        for severity in Severity::ALL.iter().rev() {
            let listed = self.of(*severity).count() as u64;
            if let more @ 1.. = self.count(*severity).saturating_sub(listed) {
                let more = count(more, &format!("more {severity}"));
                writeln!(f, "{more}, not listed\n")?;
            }
        }
        let mut set = Vec::new();
        for rule in Rule::ALL {
            match self.rules.get(rule) {
                None => set.push(format!("{rule} off")),
                Some(severity) if *severity == rule.default_severity() => {}
                Some(severity) => set.push(format!("{rule} {severity}")),
            }
        }
        if !set.is_empty() {
            writeln!(f, "severities set: {}", set.join(", "))?;
        }
        writeln!(f, "{}", self.summary)
    }
}
