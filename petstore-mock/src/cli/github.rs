//! GitHub Actions: annotations of a run, and the summary of its job.

use std::{fs::OpenOptions, io::Write as _, path::Path};

use super::outcome::{CliError, say, variable};
use crate::report::{Finding, Report, Severity};

/// GitHub shows at most this many annotations for each step and level.
const MAX_ANNOTATIONS: usize = 10;

/// GitHub refuses summaries of more than 1 MiB.
const MAX_SUMMARY_CHARACTERS: usize = 250_000;

/// If a workflow runs this, writes annotations on stderr, and the report into the job's summary.
/// `failing` is the lowest severity that fails the run. `unreached` says that no request reached the
/// service.
pub(super) fn write(
    report: &Report,
    failing: Option<Severity>,
    unreached: Option<&str>,
) -> Result<(), CliError> {
    if variable("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
        return Ok(());
    }
    let unreached_line = unreached.map(|unreached| {
        let level = level(failing.is_some());
        format!("::{level} title=petstore-mock::{}", escaped(unreached))
    });
    let findings = report.findings();
    let lines = findings.filter_map(|finding| annotation(finding, failing));
    for line in unreached_line
        .into_iter()
        .chain(lines)
        .take(MAX_ANNOTATIONS)
    {
        say(line);
    }
    let Some(path) = variable("GITHUB_STEP_SUMMARY") else {
        return Ok(());
    };
    let path = Path::new(&path);
    let text = report.to_text() + unreached.unwrap_or_default();
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(summary(&text).as_bytes()))
        .map_err(|error| CliError::file("write the summary", path, &error))
}

/// Returns the annotation of a finding, which is a workflow command. A notice has none.
fn annotation(finding: &Finding, failing: Option<Severity>) -> Option<String> {
    if finding.severity == Severity::Notice {
        return None;
    }
    let is_failing = failing.is_some_and(|lowest| finding.severity >= lowest);
    let level = level(is_failing);
    let mut message = finding.sentence();
    if let Some(remedy) = &finding.remedy {
        message = format!("{message}\n{remedy}");
    }
    let title = escaped(&format!("petstore-mock: {}", finding.rule));
    // Colons and commas have a meaning in a property.
    let title = title.replace(':', "%3A").replace(',', "%2C");
    Some(format!("::{level} title={title}::{}", escaped(&message)))
}

const fn level(is_failing: bool) -> &'static str {
    match is_failing {
        true => "error",
        false => "warning",
    }
}

/// Escapes the message of a workflow command.
fn escaped(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Returns the report as the summary shows it: in a code block, where text from clients cannot act as
/// Markdown. A summary can hold only so much of it.
fn summary(text: &str) -> String {
    let shown: String = text.chars().take(MAX_SUMMARY_CHARACTERS).collect();
    format!(
        "### petstore-mock\n\n````text\n{}\n````\n",
        shown.trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity) -> Finding {
        serde_json::from_value(serde_json::json!({
            "rule": "back-off", "severity": severity, "key": "a, b: 100 %", "plan": null,
            "senders": 1, "text": "sent\r\n::error::again", "offences": 3, "requests": [],
            "advice": "", "remedy": "say so",
        }))
        .unwrap()
    }

    #[test]
    fn an_annotation_is_one_command_whatever_is_in_it() {
        let failing = Some(Severity::Violation);
        assert_eq!(
            annotation(&finding(Severity::Violation), failing).unwrap(),
            "::error title=petstore-mock%3A back-off::a, b: 100 %25: \
             sent%0D%0A::error::again%0Asay so"
        );
        assert_eq!(annotation(&finding(Severity::Notice), failing), None);
    }

    #[test]
    fn what_fails_the_run_is_an_error() {
        for (severity, failing, level) in [
            (Severity::Violation, Some(Severity::Violation), "error"),
            (Severity::Warning, Some(Severity::Violation), "warning"),
            (Severity::Warning, Some(Severity::Warning), "error"),
            (Severity::Violation, None, "warning"),
        ] {
            let annotation = annotation(&finding(severity), failing).unwrap();
            let start = format!("::{level} title=");
            assert!(annotation.starts_with(&start), "{failing:?}: {annotation}");
        }
    }

    #[test]
    fn a_long_report_is_cut() {
        let text = summary(&"小\n".repeat(200_000));
        assert!(text.len() < 1_000_000, "{}", text.len());
        assert!(text.ends_with("小\n````\n"));
        assert_eq!(
            summary("short\n"),
            "### petstore-mock\n\n````text\nshort\n````\n"
        );
    }
}
