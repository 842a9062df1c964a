//! The report, as a program reads it, and as text and JSON.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    finding::Finding,
    rule::{Rule, Severities, Severity},
    text::count,
};

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
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    answers: Answers,
    /// The keys with their numbers of requests, in order of their numbers.
    keys: Vec<(String, u64)>,
    severities: Severities,
    /// The most severe first.
    findings: Vec<Finding>,
    /// The number of findings that are not listed, by severity.
    unlisted: [u64; 3],
}

/// How the requests were answered.
#[derive(Clone, Copy, Debug, Default, Serialize)]
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
}

impl Answers {
    pub(super) fn add(&mut self, status: Option<u16>) {
        self.requests += 1;
        match status {
            Some(429) => self.refused += 1,
            Some(500..) => self.failed += 1,
            Some(_) => {}
            None => self.lost += 1,
        }
    }
}

impl Report {
    pub(super) fn new(answers: Answers, keys: Vec<(String, u64)>, severities: Severities) -> Self {
        Self {
            answers,
            keys,
            severities,
            findings: Vec::new(),
            unlisted: [0; 3],
        }
    }

    /// Returns the report with findings, the most severe first, and the number of others by severity.
    pub(super) fn with(self, findings: Vec<Finding>, unlisted: [u64; 3]) -> Self {
        Self {
            findings,
            unlisted,
            ..self
        }
    }

    /// Returns the number of judged requests.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.answers.requests
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

    /// Returns the last line of the report, which counts the findings and the answers 429 and 5xx.
    #[must_use]
    pub fn summary_line(&self) -> String {
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

    /// Returns the number of findings with this severity.
    pub(super) fn count(&self, severity: Severity) -> u64 {
        self.of(severity).count() as u64 + self.unlisted[severity as usize]
    }

    /// Returns the names of the keys.
    #[cfg(feature = "junit")]
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(name, _)| &**name)
    }

    /// Returns the rules that are not off.
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        Rule::ALL
            .iter()
            .copied()
            .filter(|rule| rule.severity(&self.severities).is_some())
    }

    /// Returns the report as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let key = |(name, requests): &(String, u64)| json!({"name": name, "requests": requests});
        let about = |rule: Rule| {
            let mut about = json!(rule.about());
            about["severity"] = json!(rule.severity(&self.severities));
            (rule.to_string(), about)
        };
        let mut report = json!({
            "compliant": self.is_compliant(),
            "summary": self.summary_line(),
            "violations": self.count(Severity::Violation),
            "warnings": self.count(Severity::Warning),
            "notices": self.count(Severity::Notice),
            "keys": self.keys.iter().map(key).collect::<Vec<_>>(),
            "findings": self.findings,
            "rules": self.rules().map(about).collect::<Map<_, _>>(),
        });
        if let (Value::Object(report), Value::Object(mut answers)) =
            (&mut report, json!(self.answers))
        {
            report.append(&mut answers);
        }
        report.to_string()
    }
}

impl fmt::Display for Answers {
    /// Writes the numbers of answers that a summary must not hide.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = match self.refused {
            1 => Some("1 was answered 429".to_owned()),
            refused => Some(format!("{refused} were answered 429")).filter(|_| refused > 0),
        };
        let failed = (self.failed > 0).then(|| format!("{} 5xx", self.failed));
        let lost = (self.lost > 0).then(|| format!("{} without a response", self.lost));
        let answers: Vec<_> = [refused, failed, lost].into_iter().flatten().collect();
        if answers.is_empty() {
            return Ok(());
        }
        write!(f, "; {}", answers.join(", "))
    }
}

impl fmt::Display for Report {
    /// Writes the findings, the most severe first, and then the summary in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        for severity in Severity::ALL.iter().rev() {
            if let more @ 1.. = self.unlisted[*severity as usize] {
                writeln!(
                    f,
                    "{}, not listed\n",
                    count(more, &format!("more {severity}"))
                )?;
            }
        }
        let set = self.severities.iter();
        let set = set.filter(|(rule, severity)| **severity != Some(rule.about().severity));
        let set = set.map(|(rule, severity)| match severity {
            Some(severity) => format!("{rule} {severity}"),
            None => format!("{rule} off"),
        });
        let set: Vec<_> = set.collect();
        if !set.is_empty() {
            writeln!(f, "severities set: {}", set.join(", "))?;
        }
        writeln!(f, "{}", self.summary_line())
    }
}
