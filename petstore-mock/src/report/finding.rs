//! The report and its findings, as a program reads them. Their JSON form is that of the report.

use std::{
    borrow::Cow,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Method;
use serde::{Serialize, Serializer};

use super::{
    facts::Facts,
    rule::{Rule, Severities, Severity},
    text::{clock_time, count, seconds},
};
use crate::{
    clock::{instant, seconds as as_seconds},
    plan::Plan,
};

/// The maximum number of requests of a finding in the text.
const MAX_LINES: usize = 5;

/// A rule that the requests of a key broke, or that they may have broken.
///
/// All early requests in one wait are one finding, and so are all repeats of one failed request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The severity: that of the rule, or [`Severity::Notice`] if it may be the work of the
    /// declared number of senders.
    pub severity: Severity,
    /// The name of the key, or its number; never the key itself.
    pub key: String,
    /// The plan of the key; `None` without a valid key.
    pub plan: Option<Plan>,
    /// The most requests of the key that may be under way at once, as declared.
    pub senders: u32,
    /// What happened, in one sentence.
    pub text: String,
    /// The number of requests that broke the rule.
    pub offences: u64,
    /// The request before them that explains why, and the first ones that broke the rule.
    pub requests: Vec<JudgedRequest>,
    /// What to declare if the finding is wrong.
    pub remedy: Option<String>,
}

/// The role of a request in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Role {
    /// Its response, or the lack of one, makes the later requests break the rule.
    Cause,
    /// The request breaks the rule.
    Offence,
}

/// A request in a finding, without bodies, and with every key masked.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JudgedRequest {
    /// The number of the request in the journal, from 1.
    pub number: u64,
    /// The role of the request in the finding.
    pub role: Role,
    /// When the request arrived, on the mock's clock.
    #[serde(serialize_with = "as_instant")]
    pub at: SystemTime,
    /// When its response was read or lost.
    #[serde(serialize_with = "as_instant")]
    pub ended_at: SystemTime,
    /// The method.
    #[serde(serialize_with = "as_text")]
    pub method: Method,
    /// The path and query.
    pub path: Arc<str>,
    /// The number of its connection, from 1.
    pub connection: u64,
    /// The status of the response; `None` if the client did not receive the whole response.
    pub status: Option<u16>,
    /// Why the client did not receive the whole response.
    pub lost: Option<Cow<'static, str>>,
    /// The id of the pet that it created, whatever the response was.
    pub added: Option<i64>,
    /// How much too early it arrived. In JSON, it is in seconds.
    #[serde(rename = "earlySeconds", serialize_with = "as_seconds::serialize")]
    pub early: Option<Duration>,
}

impl JudgedRequest {
    pub(super) fn new(facts: &Facts, role: Role, path: String, early: Option<Duration>) -> Self {
        Self {
            number: facts.number(),
            role,
            at: instant(facts.arrived().at()),
            ended_at: instant(facts.ended().at()),
            method: facts.method().clone(),
            path: path.into(),
            connection: facts.connection(),
            status: facts.status(),
            lost: facts.lost().cloned(),
            added: facts.added(),
            early,
        }
    }
}

impl fmt::Display for JudgedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.role {
            Role::Cause => '*',
            Role::Offence => '!',
        };
        let at = clock_time(self.at);
        write!(
            f,
            "{mark} #{} {at} {} {} -> ",
            self.number, self.method, self.path
        )?;
        match (self.status, &self.lost) {
            (Some(status), _) => write!(f, "{status}")?,
            (None, cause) => {
                let cause = cause.as_deref().unwrap_or("the client left");
                write!(f, "no response ({cause})")?;
            }
        }
        if let Some(early) = self.early {
            write!(f, ", {} too early", seconds(early))?;
        }
        match self.added {
            Some(id) => write!(f, ", pet {id} was created"),
            None => Ok(()),
        }
    }
}

impl Finding {
    /// Returns the number of the first request.
    pub(super) fn first_request(&self) -> Option<u64> {
        self.requests.first().map(|request| request.number)
    }

    /// Returns the key with its plan.
    pub(super) fn key_name(&self) -> String {
        match self.plan {
            Some(plan) => format!("key {} ({plan})", self.key),
            None => self.key.clone(),
        }
    }

    /// Returns what happened, in one line.
    pub(super) fn line(&self) -> String {
        let Self {
            severity,
            rule,
            text,
            ..
        } = self;
        format!("{severity} [{rule}]  {}: {text}", self.key_name())
    }
}

impl fmt::Display for Finding {
    /// Writes what happened. Unless it is a notice, then come the requests, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.line())?;
        if self.severity == Severity::Notice {
            return Ok(());
        }
        let is_cause = |request: &&JudgedRequest| request.role == Role::Cause;
        let causes = self.requests.iter().filter(is_cause).count();
        let shown = &self.requests[..self.requests.len().min(MAX_LINES + causes)];
        for request in shown {
            writeln!(f, "  {request}")?;
        }
        let more = self.offences - (shown.len() - causes) as u64;
        if more > 0 {
            writeln!(f, "  ! and {}", count(more, "more request"))?;
        }
        let about = self.rule.about();
        writeln!(f, "  do: {} ({})", about.advice, about.source)?;
        match &self.remedy {
            Some(remedy) => writeln!(f, "  {remedy}"),
            None => Ok(()),
        }
    }
}

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
    pub(super) answers: Answers,
    /// The keys with their numbers of requests, in order of their numbers.
    pub(super) keys: Vec<(String, u64)>,
    /// The most severe first.
    pub(super) findings: Vec<Finding>,
    pub(super) severities: Severities,
    /// The number of findings that are not listed, by severity.
    pub(super) unlisted: [u64; 3],
}

/// How the requests were answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    pub(super) requests: u64,
    /// Those that were answered 429.
    pub(super) refused: u64,
    /// Those that were answered 5xx.
    pub(super) failed: u64,
    /// Those whose client did not receive the whole response.
    pub(super) lost: u64,
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

    /// Returns the rules that are not off.
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        Rule::ALL
            .iter()
            .copied()
            .filter(|rule| rule.severity(&self.severities).is_some())
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

#[cfg_attr(
    windows,
    expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )
)]
fn as_instant<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*at))
}

fn as_text<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(method)
}
