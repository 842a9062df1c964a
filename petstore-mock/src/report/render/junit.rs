//! The report as JUnit's XML: a test suite for each scope, a test case for each rule.

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::text::{sentence, write_finding};
use crate::report::{Finding, Report, Rule, Severity};

/// Writes the report as JUnit's XML.
pub(in crate::report) fn junit(report: &Report) -> String {
    let mut document = Document::new("petstore-mock compliance");
    let mut scopes: Vec<&str> = report.scopes().map(|(scope, _)| scope).collect();
    // What was found must not get lost with a scope that has no requests since.
    for finding in report.findings() {
        if !scopes.contains(&&*finding.scope) {
            scopes.push(&finding.scope);
        }
    }
    document.add_test_suites(scopes.into_iter().map(|scope| suite(report, scope)));
    // The names in a report are text, and text can be written.
    document.to_string().unwrap_or_default()
}

fn suite(report: &Report, scope: &str) -> TestSuite {
    let mut suite = TestSuite::new(format!("compliance: {scope}"));
    suite.add_test_cases(report.rules().map(|rule| {
        let of_rule = |finding: &&Finding| *finding.scope == *scope && finding.rule == rule;
        case(scope, rule, &report.findings().filter(of_rule).collect::<Vec<_>>())
    }));
    suite
}

fn case(scope: &str, rule: Rule, findings: &[&Finding]) -> TestCase {
    let mut text = String::new();
    for finding in findings {
        // Writing to a string does not fail.
        let _ = write_finding(&mut text, finding);
    }
    let worst = findings.iter().max_by_key(|finding| finding.severity);
    let failed = worst.filter(|finding| finding.severity > Severity::Notice);
    let status = match failed {
        None => TestCaseStatus::success(),
        Some(finding) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let what = finding.evidence.first().map(sentence).unwrap_or_default();
            status
                .set_type(finding.severity.to_string())
                .set_message(format!("{what}, {}", finding.client))
                .set_description(text.clone());
            status
        }
    };
    let mut case = TestCase::new(scope, status);
    case.set_classname(format!("compliance.{rule}"));
    if failed.is_none() && !text.is_empty() {
        case.set_system_out(text);
    }
    case
}
