//! Writes the report as text, JSON, JUnit XML and Markdown. Each finding is self-contained.

use std::{fmt, time::Duration};

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Map, json};
use strum::VariantArray;

use super::{
    finding::{Evidence, Finding, Report},
    request::{JudgedRequest, Role, clock_time, instant, seconds},
    rule::{Rule, Severity},
};

/// The minimum difference between the mock's clock and real time that is shown.
const CLOCK_MOVED: Duration = Duration::from_millis(50);

impl Report {
    /// Returns the report as one line, without a line break.
    #[must_use]
    pub fn summary_line(&self) -> String {
        let requests = count(self.requests, "request");
        if self.is_free_of(Severity::Notice) {
            return format!("compliance: nothing found in {requests}");
        }
        let severities = Severity::VARIANTS.iter().rev();
        let counts = severities.map(|one| count(self.count(*one), &one.to_string()));
        let sum = |rule: &Rule| -> u64 {
            let of_rule = self.findings.iter().filter(|finding| finding.rule == *rule);
            of_rule.map(|finding| finding.count).sum()
        };
        let broken = Rule::all().iter().filter(|rule| sum(rule) > 0);
        let broken = broken.map(|rule| format!("{rule} {}", sum(rule)));
        let (counts, broken) = (counts.collect::<Vec<_>>(), broken.collect::<Vec<_>>());
        format!(
            "compliance: {} in {requests} ({})",
            counts.join(", "),
            broken.join(", ")
        )
    }

    /// Returns the report as text. The same as its `Display`.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.to_string()
    }

    /// Returns the report as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let scope = |(name, requests)| json!({"name": name, "requests": requests});
        let about = |rule: Rule| {
            let mut about = json!(rule.about());
            about["severity"] = json!(rule.severity(&self.severities));
            (rule.to_string(), about)
        };
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

    /// Returns the report as JUnit XML: a test suite for each scope, with a test case for each
    /// rule. Violations and warnings are failures.
    #[must_use]
    pub fn to_junit(&self) -> String {
        let mut document = Document::new("petstore-mock compliance");
        for (scope, _) in self.scopes() {
            let in_scope = |finding: &&Finding| &*finding.scope == scope;
            let findings: Vec<_> = self.findings.iter().filter(in_scope).collect();
            let mut suite = TestSuite::new(format!("compliance: {scope}"));
            suite.add_test_cases(self.rules().map(|rule| {
                let of_rule = findings.iter().filter(|finding| finding.rule == rule);
                test_case(scope, rule, &of_rule.copied().collect::<Vec<_>>())
            }));
            document.add_test_suite(suite);
        }
        // All names are valid text, so this cannot fail.
        document.to_string().unwrap_or_default()
    }

    /// Returns the report as Markdown, for example for the job summary of a CI run.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        // Text from clients is in code blocks, where it cannot act as Markdown.
        let block = |text: &str| format!("\n```text\n{text}```\n");
        let mut out = format!("# Compliance report\n\n{}\n", self.summary_line());
        out += &self
            .remarks()
            .lines()
            .map(|line| format!("\n{line}\n"))
            .collect::<String>();
        for finding in &self.findings {
            let Finding { rule, severity, .. } = finding;
            out += &format!("\n## {severity} `{rule}`: {}\n", rule.about().title);
            out += &block(&finding.to_string());
        }
        let clean = self.clean_scopes();
        if !clean.is_empty() {
            out += &block(&clean);
        }
        out
    }

    /// Returns remarks for the reader of the findings, one per line.
    fn remarks(&self) -> String {
        let set = self.severities.iter();
        let set = set.filter(|(rule, severity)| **severity != Some(rule.about().severity));
        let set = set.map(|(rule, severity)| {
            format!(
                "{rule} {}",
                severity.map_or("off".to_owned(), |one| one.to_string())
            )
        });
        let set = set.collect::<Vec<_>>().join(", ");
        let mut remarks = String::new();
        if !set.is_empty() {
            remarks += &format!("severities set: {set}\n");
        }
        if !self.findings.is_empty() {
            remarks += "! marks requests that break the rule, * those that it follows from\n";
        }
        for severity in Severity::VARIANTS.iter().rev() {
            if let more @ 1.. = self.unlisted[*severity as usize] {
                remarks += &format!("{} more, not listed\n", count(more, &severity.to_string()));
            }
        }
        remarks
    }

    /// Returns a line for each scope without findings.
    fn clean_scopes(&self) -> String {
        let is_clean = |scope: &str| self.findings.iter().all(|finding| &*finding.scope != scope);
        let clean = self.scopes().filter(|(scope, _)| is_clean(scope));
        let line = |(scope, requests)| {
            format!(
                "scope {scope}: nothing found in {}\n",
                count(requests, "request")
            )
        };
        clean.map(line).collect()
    }
}

fn test_case(scope: &str, rule: Rule, findings: &[&Finding]) -> TestCase {
    let text: String = findings.iter().map(ToString::to_string).collect();
    let failed = findings
        .iter()
        .find(|finding| finding.severity > Severity::Notice);
    let mut status = TestCaseStatus::success();
    if let Some(finding) = failed {
        status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        let what = finding.evidence.first().map(sentence).unwrap_or_default();
        status
            .set_type(finding.severity.to_string())
            .set_message(format!("{what}, {}", finding.client))
            .set_description(text.clone());
    }
    let mut case = TestCase::new(scope, status);
    case.set_classname(format!("compliance.{rule}"));
    if failed.is_none() && !text.is_empty() {
        case.set_system_out(text);
    }
    case
}

impl fmt::Display for Report {
    /// Writes the findings, the most severe first, and a line for each scope without findings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.summary_line(), self.remarks())?;
        for finding in &self.findings {
            write!(f, "\n{finding}")?;
        }
        let clean = self.clean_scopes();
        if self.findings.is_empty() || clean.is_empty() {
            Ok(())
        } else {
            write!(f, "\n{clean}")
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rule,
            severity,
            scope,
            client,
            evidence,
            ..
        } = self;
        let (about, often) = (rule.about(), times(self.count));
        writeln!(
            f,
            "{severity} [{rule}] {}, {often}   scope: {scope}\n  {client}",
            about.title
        )?;
        evidence
            .iter()
            .try_for_each(|evidence| write!(f, "{evidence}"))?;
        if let more @ 1.. = self.count - evidence.len() as u64 {
            writeln!(f, "  and {more} more")?;
        }
        writeln!(
            f,
            "  why: {} ({})\n  do: {}",
            about.reason, about.source, about.advice
        )
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}: {}", instant(self.at.at), sentence(self))?;
        if let Some(told) = &self.told {
            writeln!(f, "  told: {told}")?;
        }
        let mut before: Option<&JudgedRequest> = None;
        for request in &self.requests {
            write!(f, "  {request}")?;
            if let Some(before) = before.filter(|_| request.role == Role::Offence) {
                let wait = seconds(request.arrived.gap_since(&before.ended));
                write!(f, "   <- {wait} after the end of #{}", before.number)?;
            }
            if request.role.is_concerned() {
                before = Some(request);
            }
            writeln!(f, "{}", real_time(request, &self.requests[0]))?;
        }
        if self.omitted > 0 {
            writeln!(f, "    {} not shown", count(self.omitted, "request"))?;
        }
        Ok(())
    }
}

impl fmt::Display for JudgedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            method,
            path,
            connection,
            ..
        } = self;
        let mark = match self.role {
            Role::Before | Role::After => ' ',
            Role::Cause => '*',
            Role::Offence => '!',
        };
        let at = clock_time(self.arrived.at);
        write!(
            f,
            "{mark} #{number} {at} {method} {path}  connection {connection}  -> "
        )?;
        match (self.status, &self.lost) {
            (Some(status), _) => write!(f, "{status}")?,
            (None, cause) => {
                let after = seconds(self.ended.gap_since(&self.arrived));
                let cause = cause.as_deref().unwrap_or("the client left");
                write!(f, "no response ({cause} after {after})")?;
            }
        }
        if let Some(wait) = &self.retry_after {
            write!(f, ", Retry-After: {wait}")?;
        }
        if self.banned {
            f.write_str(", the key is banned")?;
        }
        self.added
            .map_or(Ok(()), |id| write!(f, ", pet {id} was created"))
    }
}

/// Returns what happened, with the number of requests if several.
fn sentence(evidence: &Evidence) -> String {
    match evidence.offences {
        1 => evidence.text.clone(),
        offences => format!("{} ({offences} requests broke the rule)", evidence.text),
    }
}

/// Returns the real time since the first request, if the mock's clock was moved in the meantime.
fn real_time(request: &JudgedRequest, first: &JudgedRequest) -> String {
    let clock = request.arrived.at.saturating_sub(first.arrived.at);
    let real = request
        .arrived
        .real
        .saturating_duration_since(first.arrived.real);
    if clock.abs_diff(real) <= CLOCK_MOVED {
        return String::new();
    }
    format!("  (in real time {} after the first)", seconds(real))
}

/// Writes a number of times.
fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// Writes a number with a noun.
fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::times;
    use crate::report::{Report, Rule, corpus::judge};

    /// A `POST` repeated after a lost answer, a wait that was ignored while the mock's clock was moved, and a
    /// scope without a finding.
    const RECORDING: &str = r#"
42.9+0.003 3<0.001 GET /v1/pets?limit=5 200 scope=tests::adds_rex
43.112+0.004 3 POST /v1/pets - scope=tests::adds_rex added=27 body={"name":"Rex","categoryId":7}
43.415+0.004 4<0.001 POST /v1/pets 201 scope=tests::adds_rex added=28 body={"categoryId":7,"name":"Rex"}
43.5+0.004 4 GET /v1/pets 200 scope=tests::adds_rex
44+0.001 5<0.001 GET /v1/pets 429 scope=tests::is_limited wait=16 remaining=0 reset=60
45+0.001 5 GET /v1/pets 429 scope=tests::is_limited wait=15 remaining=0 reset=60 real=45.05
46+0.001 5 GET /v1/pets/1 429 scope=tests::is_limited wait=14 remaining=0 reset=60 real=46.051
50+0.001 6<0.001 GET /v1/pets 200 scope=tests::lists
"#;

    fn report() -> Report {
        judge(RECORDING.lines().filter(|line| !line.is_empty()))
    }

    #[test]
    fn a_finding_stands_alone_as_text() {
        insta::assert_snapshot!(report().to_text());
    }

    #[test]
    fn what_is_empty_is_left_out() {
        let line = "0+0.003 1 GET /v1/pets 200";
        let text = judge([line].into_iter()).to_text();
        assert_eq!(text, "compliance: nothing found in 1 request\n");
        let text = judge([line, "1+0.003 1 GET /v1/pets 200 key-in=k"].into_iter()).to_text();
        assert!(text.ends_with("and nowhere else.\n"), "{text}");
        assert_eq!([1, 2, 3].map(times), ["once", "twice", "3 times"]);
    }

    #[test]
    fn a_finding_stands_alone_as_json() {
        let mut json: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
        assert_eq!(
            json["rules"].as_object_mut().unwrap().len(),
            Rule::all().len()
        );
        json["rules"] = serde_json::Value::Null;
        // Another crate of the same build may keep their order.
        json.sort_all_objects();
        insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
    }

    #[test]
    fn a_finding_stands_alone_as_junit() {
        insta::assert_snapshot!(report().to_junit());
    }

    #[test]
    fn a_finding_stands_alone_as_markdown() {
        insta::assert_snapshot!(report().to_markdown());
    }
}
