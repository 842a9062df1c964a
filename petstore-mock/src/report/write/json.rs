//! The report as JSON, in the mock's own way: camel case, times in seconds.

use serde_json::{Value, json};

use crate::report::{Evidence, Finding, Report};

/// Writes the report as one JSON object and a line break.
pub(in crate::report) fn json(report: &Report) -> String {
    let sum = |findings: &mut dyn Iterator<Item = &Finding>| -> u64 {
        findings.map(Finding::count).sum()
    };
    let object = json!({
        "compliant": report.is_compliant(),
        "requests": report.requests(),
        "violations": sum(&mut report.violations()),
        "warnings": sum(&mut report.warnings()),
        "notices": sum(&mut report.notices()),
        "findings": report.findings().map(finding).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

fn finding(finding: &Finding) -> Value {
    json!({
        "rule": finding.rule(),
        "title": finding.title(),
        "severity": finding.severity(),
        "count": finding.count(),
        "paragraph": finding.paragraph(),
        "evidence": finding.evidence().iter().map(evidence).collect::<Vec<_>>(),
    })
}

fn evidence(evidence: &Evidence) -> Value {
    json!({
        "requests": evidence.requests(),
        "at": evidence.at.as_secs_f64(),
        "by": evidence.by.map(|by| by.as_secs_f64()),
        "text": evidence.text(),
    })
}

#[cfg(test)]
mod tests {
    use super::{super::sample, *};

    #[test]
    fn holds_everything() {
        let value: Value = serde_json::from_str(&json(&sample::dirty())).unwrap();
        assert_eq!(value["compliant"], false);
        assert_eq!(
            [&value["requests"], &value["violations"], &value["warnings"], &value["notices"]],
            [23, 21, 0, 1]
        );
        let finding = &value["findings"][0];
        assert_eq!(
            (&finding["rule"], &finding["severity"]),
            (&json!("told-to-wait"), &json!("violation"))
        );
        assert_eq!(finding["evidence"].as_array().unwrap().len(), 20);
        let first = json!({
            "requests": [2, 3], "at": 1_767_225_610.0, "by": 50.0, "text": "sent 50 s too early"
        });
        assert_eq!(finding["evidence"][0], first);
        let value: Value = serde_json::from_str(&json(&sample::clean())).unwrap();
        assert_eq!((&value["compliant"], &value["findings"]), (&json!(true), &json!([])));
    }
}
