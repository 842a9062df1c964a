//! The gate of a CI run: prints what the compliance report found, writes the report, and determines the
//! exit status.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};

use super::{
    github,
    outcome::{CliError, DONE, FINDINGS, say},
};
use crate::report::{Report, Rule, Severity, UNREACHED};

/// The maximum number of printed lines of a report that fails the run, and of another one.
const MAX_LINES: usize = 40;
const MAX_LINES_OF_PASSED: usize = 10;

/// The flags of the compliance report.
#[derive(Args)]
#[command(next_help_heading = "Report")]
pub(super) struct GateArgs {
    /// File to write the compliance report to.
    ///
    /// Its extension sets the format: .txt, .json or .xml (JUnit).
    #[arg(long, value_name = "FILE", value_parser = report_file)]
    report: Option<ReportFile>,

    /// Exit with 3 if the report has violations, or if no request with a valid key reached the service;
    /// with `warnings`, also if it has warnings.
    ///
    /// Under GitHub Actions, findings become annotations, and the report goes into the job's summary,
    /// with or without this flag.
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
}

/// A file for the report, and how the report is written into it.
#[derive(Clone)]
struct ReportFile {
    path: PathBuf,
    write: fn(&Report) -> String,
}

/// What fails a run. The aliases are the severities as `--rule` and the report spell them.
#[derive(Clone, Copy, ValueEnum)]
enum FailOn {
    #[value(alias = "violation")]
    Violations,
    #[value(alias = "warning")]
    Warnings,
}

fn report_file(text: &str) -> Result<ReportFile, String> {
    let path = PathBuf::from(text);
    let write = match path.extension().and_then(|extension| extension.to_str()) {
        Some("txt") => Report::to_text,
        Some("json") => Report::to_json,
        Some("xml") => Report::to_junit,
        _ => {
            return Err("its name sets the format: let it end with .txt, .json or .xml".to_owned());
        }
    };
    Ok(ReportFile { path, write })
}

/// Parses a rule and its severity; `None` for a rule that is off.
pub(super) fn rule(text: &str) -> Result<(Rule, Option<Severity>), String> {
    let (name, severity) = text.split_once('=').ok_or("write NAME=SEVERITY")?;
    let rule = name.parse::<Rule>();
    let rule = rule.map_err(|error| format!("unknown rule: {error}"))?;
    if severity == "off" {
        return Ok((rule, None));
    }
    match severity.parse() {
        Ok(severity) => Ok((rule, Some(severity))),
        Err(error) => Err(format!("unknown severity: {error}, off")),
    }
}

impl GateArgs {
    /// Prints the report: as many lines as are allowed, and its last line.
    pub(super) fn print(&self, report: &Report) {
        let text = report.to_text();
        let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
        let Some((summary, lines)) = lines.split_last() else {
            return;
        };
        let most = match self.is_failed_by(report) {
            true => MAX_LINES,
            false => MAX_LINES_OF_PASSED,
        };
        for line in lines.iter().take(most) {
            say(line);
        }
        if lines.len() > most {
            let left = lines.len() - most;
            let place = match &self.report {
                Some(file) => format!("see {}", file.path.display()),
                None => "add --report FILE to get them".to_owned(),
            };
            say(format_args!("petstore-mock: {left} more lines: {place}"));
        }
        say(format_args!("petstore-mock: {summary}"));
    }

    /// Writes the report, and returns the exit status. `hint` says why usually no request reaches the
    /// service.
    pub(super) fn judge(&self, report: &Report, hint: &str) -> Result<u8, CliError> {
        if let Some(ReportFile { path, write }) = &self.report {
            // The command of `exec` may have removed the folder, for example in a clean-up.
            fs::create_dir_all(path.parent().unwrap_or(Path::new("")))
                .and_then(|()| fs::write(path, write(report)))
                .map_err(|error| CliError::file("write the report", path, &error))?;
        }
        let is_reached = report.has_reached_the_service();
        let unreached = (!is_reached).then(|| format!("{UNREACHED}: {hint}"));
        github::write(report, self.failing(), unreached.as_deref())?;
        if let Some(unreached) = unreached {
            say(format_args!("petstore-mock: {unreached}"));
        }
        let is_failed = self.is_failed_by(report) || (self.fail_on.is_some() && !is_reached);
        Ok(if is_failed { FINDINGS } else { DONE })
    }

    /// Returns the lowest severity that fails the run.
    fn failing(&self) -> Option<Severity> {
        self.fail_on.map(|fail_on| match fail_on {
            FailOn::Violations => Severity::Violation,
            FailOn::Warnings => Severity::Warning,
        })
    }

    fn is_failed_by(&self, report: &Report) -> bool {
        let failing = self.failing();
        failing.is_some_and(|severity| !report.is_free_of(severity))
    }
}
