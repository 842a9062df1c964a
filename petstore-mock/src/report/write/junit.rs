//! The report as JUnit's XML, which CI services read: each rule is a test case. A violation or a
//! warning fails it; a notice is its output.

use std::fmt::{self, Write as _};

use super::{page::escaped, text::evidence_lines};
use crate::report::{Finding, Report, Severity};

/// Writes the report as one XML document.
pub(in crate::report) fn junit(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = suite(&mut out, report);
    out
}

fn suite(out: &mut String, report: &Report) -> fmt::Result {
    let (tests, failures) =
        (report.rules().len(), report.findings().filter(|finding| fails(finding)).count());
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\"");
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"petstore-mock\" {counts}>")?;
    writeln!(out, "  <testsuite name=\"compliance\" {counts} skipped=\"0\">")?;
    for rule in report.rules() {
        case(out, rule)?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

fn case(out: &mut String, rule: &Finding) -> fmt::Result {
    let name = escaped(rule.title());
    write!(
        out,
        "    <testcase classname=\"compliance.{}\" name=\"{name}\" time=\"0\"",
        rule.rule()
    )?;
    if rule.count() == 0 {
        return writeln!(out, "/>");
    }
    let body = escaped(&format!("{}\n\n{}", rule.paragraph(), evidence_lines(rule)));
    let (severity, count) = (rule.severity(), rule.count());
    writeln!(out, ">")?;
    if fails(rule) {
        let message = format!("{severity}: {name} ({count})");
        writeln!(out, "      <failure type=\"{severity}\" message=\"{message}\">{body}</failure>")?;
    } else {
        writeln!(out, "      <system-out>{body}</system-out>")?;
    }
    writeln!(out, "    </testcase>")
}

fn fails(finding: &Finding) -> bool {
    finding.severity() >= Severity::Warning
}

#[cfg(test)]
mod tests {
    use super::{super::sample, *};

    #[test]
    fn each_rule_is_a_case_and_only_violations_and_warnings_fail() {
        let xml = junit(&sample::dirty());
        let of = |what| xml.matches(what).count();
        assert_eq!(of("<testcase "), sample::dirty().rules().len());
        assert_eq!((of("<failure "), of("</failure>"), of("<system-out>")), (1, 1, 1));
        assert!(xml.contains("failures=\"1\""), "{xml}");
        assert!(xml.contains("message=\"violation: sent while told to wait (21)\""), "{xml}");
        assert_eq!(junit(&sample::clean()).matches("<failure").count(), 0);
    }
}
