//! The report as Markdown, for the summary of a CI run or a comment on a change.

use std::fmt::{self, Write as _};

use super::{
    text::summary,
    units::{instant, not_shown, numbers, times},
};
use crate::report::{Finding, Report};

/// Writes the report as Markdown.
pub(in crate::report) fn markdown(report: &Report) -> String {
    let mut out = format!("# Compliance report\n\n{}\n", summary(report));
    for finding in report.findings() {
        // Writing to a string does not fail.
        let _ = one(&mut out, finding);
    }
    out
}

fn one(out: &mut String, finding: &Finding) -> fmt::Result {
    let (severity, title) = (finding.severity(), finding.title());
    writeln!(out, "\n## {severity}: {title}, {} (`{}`)\n", times(finding), finding.rule())?;
    writeln!(out, "{}\n", finding.paragraph())?;
    writeln!(out, "| when | requests | what |\n|---|---|---|")?;
    for evidence in finding.evidence() {
        let numbers = numbers(evidence);
        writeln!(out, "| {} | {numbers} | {} |", instant(evidence), evidence.text())?;
    }
    match not_shown(finding) {
        0 => Ok(()),
        more => writeln!(out, "\nand {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::sample, *};

    #[test]
    fn each_finding_is_a_section_with_a_table() {
        let text = markdown(&sample::dirty());
        assert!(text.starts_with("# Compliance report\n\ncompliance: 21 violations"), "{text}");
        assert!(text.contains("\n## notice: no User-Agent, once (`user-agent`)\n"), "{text}");
        let row = "| 2026-01-01T00:00:10.000Z | requests 2, 3 | sent 50 s too early |\n";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("\nand 1 more\n"), "{text}");
    }
}
