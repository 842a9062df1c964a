//! Writes the report as JSON, JUnit XML and Markdown.

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Map, json};

use super::{
    evidence::Evidence,
    finding::{Finding, Report},
    rule::{Rule, Severity},
};

impl Report {
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
        // This cannot fail, because all names are valid text.
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
}

fn test_case(scope: &str, rule: Rule, findings: &[&Finding]) -> TestCase {
    let text: String = findings.iter().map(ToString::to_string).collect();
    let failed = findings
        .iter()
        .find(|finding| finding.severity > Severity::Notice);
    let mut status = TestCaseStatus::success();
    if let Some(finding) = failed {
        status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        let what = finding
            .evidence
            .first()
            .map(Evidence::sentence)
            .unwrap_or_default();
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
