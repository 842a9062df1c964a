//! The report for a terminal: lines of at most 100 characters.

use std::fmt::{self, Write as _};

use super::units::{count, instant, not_shown, numbers, times};
use crate::report::{Finding, Report};

/// How wide the paragraphs are.
const WIDTH: usize = 96;

/// Writes the report in one line.
pub(in crate::report) fn summary(report: &Report) -> String {
    let requests = count(report.requests(), "request");
    if report.findings().next().is_none() {
        return format!("compliance: nothing found in {requests}");
    }
    let sum = |findings: &mut dyn Iterator<Item = &Finding>| findings.map(Finding::count).sum();
    let counts = [
        count(sum(&mut report.violations()), "violation"),
        count(sum(&mut report.warnings()), "warning"),
        count(sum(&mut report.notices()), "notice"),
    ];
    let named = report.findings().map(|one| format!("{} {}", one.rule(), one.count()));
    let named = named.collect::<Vec<_>>().join(", ");
    format!("compliance: {} in {requests} ({named})", counts.join(", "))
}

/// Writes the report.
pub(in crate::report) fn text(report: &Report) -> String {
    let mut out = summary(report) + "\n";
    for finding in report.findings() {
        // Writing to a string does not fail.
        let _ = one(&mut out, finding);
    }
    out
}

fn one(out: &mut String, finding: &Finding) -> fmt::Result {
    let (severity, title, rule) = (finding.severity(), finding.title(), finding.rule());
    writeln!(out, "\n{severity}: {title}, {} [{rule}]", times(finding))?;
    for line in wrapped(finding.paragraph()) {
        writeln!(out, "    {line}")?;
    }
    out.write_str(&evidence_lines(finding))
}

/// Writes each piece of evidence on a line.
pub(super) fn evidence_lines(finding: &Finding) -> String {
    let line = |one| format!("  - {} {}: {}\n", instant(one), numbers(one), one.text());
    let lines: String = finding.evidence().iter().map(line).collect();
    match not_shown(finding) {
        0 => lines,
        more => format!("{lines}  - and {more} more\n"),
    }
}

/// Breaks a paragraph into lines between its words.
fn wrapped(paragraph: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in paragraph.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{super::sample, *};

    #[test]
    fn says_in_one_line_what_was_found() {
        assert_eq!(summary(&sample::clean()), "compliance: nothing found in 1 request");
        assert_eq!(
            summary(&sample::dirty()),
            "compliance: 21 violations, 0 warnings, 1 notice in 23 requests (told-to-wait 21, \
             user-agent 1)"
        );
    }

    #[test]
    fn shows_every_finding_with_its_evidence() {
        let text = text(&sample::dirty());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let evidence: Vec<_> = text.lines().filter(|line| line.starts_with("  - ")).collect();
        assert_eq!(evidence[0], "  - 2026-01-01T00:00:10.000Z requests 2, 3: sent 50 s too early");
        assert_eq!(evidence[20], "  - and 1 more");
        assert_eq!(evidence.len(), 22);
        assert!(text.contains("\nviolation: sent while told to wait, 21 times [told-to-wait]\n"));
        assert!(text.contains("\nnotice: no User-Agent, once [user-agent]\n"));
    }
}
