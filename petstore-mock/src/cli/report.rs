//! Writes the compliance report when the server stops, and determines the exit status.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};

use super::outcome::{CliError, DONE, FINDINGS, Io};
use crate::report::{Report, Rule, Severity};

const NO_FORMAT: &str = "cannot tell the format of the --report from its name: let it end with .txt, \
                         .json, .xml or .md, or add --report-format";

/// The flags of the compliance report.
#[derive(Args, Clone)]
#[command(next_help_heading = "Report")]
pub(super) struct ReportArgs {
    /// File to write the compliance report to, when the server stops.
    ///
    /// Its extension sets the format: .txt, .json, .xml (JUnit) or .md.
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,

    /// Format of that file, regardless of its extension.
    #[arg(long, value_name = "FORMAT", requires = "report")]
    pub(super) report_format: Option<ReportFormat>,

    /// Severity of a rule: off, notice, warning or violation (repeatable).
    ///
    /// Rules: told-to-wait, back-off, repeated-post, key-in-url (violations), retry-after, steady-retry,
    /// repeated-error, key-scheme (warnings), quota-ignored, deprecated, keep-alive, user-agent
    /// (notices). A notice never fails a run.
    #[arg(long = "rule", value_name = "NAME=SEVERITY", value_parser = rule)]
    pub(super) rules: Vec<(Rule, Option<Severity>)>,

    /// Exit with 3 if the report has violations; with `warnings`, also if it has warnings.
    #[arg(long, value_name = "SEVERITY")]
    pub(super) fail_on: Option<FailOn>,
}

/// The formats. The aliases are the extensions of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    #[value(alias = "txt")]
    Text,
    Json,
    #[value(alias = "xml")]
    Junit,
    #[value(alias = "md")]
    Markdown,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum FailOn {
    Violations,
    Warnings,
}

impl ReportArgs {
    /// Returns the report's format, if it is to be written.
    pub(super) fn format(&self) -> Result<Option<ReportFormat>, CliError> {
        let Some(path) = &self.report else {
            return Ok(None);
        };
        let named = || ReportFormat::of(path).ok_or_else(|| CliError::usage(NO_FORMAT));
        self.report_format.map_or_else(named, Ok).map(Some)
    }

    /// Prints the report's summary, writes the report, and returns the exit status.
    pub(super) fn finish(&self, report: &Report, io: &mut Io<'_>) -> Result<u8, CliError> {
        let _ = writeln!(io.err, "petstore-mock: {}", report.summary_line());
        if let (Some(path), Some(format)) = (&self.report, self.format()?) {
            // A command that cleans up may have removed the folder.
            fs::create_dir_all(path.parent().unwrap_or(Path::new("")))
                .and_then(|()| fs::write(path, format.write(report)))
                .map_err(|error| CliError::file("write the report", path, &error))?;
        }
        let is_free = match self.fail_on {
            None => true,
            Some(FailOn::Violations) => report.is_free_of(Severity::Violation),
            Some(FailOn::Warnings) => report.is_free_of(Severity::Warning),
        };
        Ok(if is_free { DONE } else { FINDINGS })
    }
}

/// Parses a rule and its severity.
fn rule(text: &str) -> Result<(Rule, Option<Severity>), String> {
    let (name, severity) = text.split_once('=').ok_or("write NAME=SEVERITY")?;
    let rule = name.parse().map_err(|_| {
        let rules: Vec<_> = Rule::all().iter().map(ToString::to_string).collect();
        format!("unknown rule; rules: {}", rules.join(", "))
    })?;
    if severity == "off" {
        return Ok((rule, None));
    }
    let severity = severity.parse();
    let severity =
        severity.map_err(|_| "unknown severity; severities: notice, warning, violation, or off")?;
    Ok((rule, Some(severity)))
}

impl ReportFormat {
    /// Returns the format for a file's extension.
    fn of(path: &Path) -> Option<Self> {
        Self::from_str(path.extension()?.to_str()?, false).ok()
    }

    fn write(self, report: &Report) -> String {
        match self {
            Self::Text => report.to_text(),
            Self::Json => report.to_json(),
            Self::Junit => report.to_junit(),
            Self::Markdown => report.to_markdown(),
        }
    }
}
