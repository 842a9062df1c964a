//! The flags of the gate. It prints what the compliance report found, writes the report, and determines
//! the exit status.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::github::{self, FoundRule};
use crate::{
    cli::outcome::{CliError, DONE, FINDINGS, Io},
    report::Report,
};

/// The maximum number of printed lines of a report that fails the run, and of another one.
const MAX_LINES: usize = 40;
const MAX_LINES_OF_PASSED: usize = 10;

const NO_FORMAT: &str = "cannot tell the format of the --report from its name: let it end with .txt, \
                         .json or .xml";

/// The flags of the compliance report.
#[derive(Args, Clone)]
#[command(next_help_heading = "Report")]
pub(in crate::cli) struct GateArgs {
    /// File to write the compliance report to.
    ///
    /// Its extension sets the format: .txt, .json or .xml (JUnit).
    #[arg(
        long,
        env = "PETSTORE_MOCK_REPORT",
        hide_env = true,
        value_name = "FILE"
    )]
    report: Option<PathBuf>,

    /// Exit with 3 if the report has violations, or if there was no request; with `warnings`, also if it
    /// has warnings.
    ///
    /// Under GitHub Actions, this also writes annotations, and the report into the job's summary.
    #[arg(
        long,
        env = "PETSTORE_MOCK_FAIL_ON",
        hide_env = true,
        value_name = "SEVERITY"
    )]
    fail_on: Option<FailOn>,
}

/// The formats. The aliases are the extensions of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    #[value(alias = "txt")]
    Text,
    Json,
    #[value(alias = "xml")]
    Junit,
}

/// What fails a run. The aliases are the severities as `--rule` and the report spell them.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailOn {
    #[value(alias = "violation")]
    Violations,
    #[value(alias = "warning")]
    Warnings,
}

/// Where the report comes from, which decides what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Origin {
    /// The server of `serve`.
    Serve,
    /// The server of `exec`.
    Exec,
    /// A running mock, whose whole report is on stdout.
    Running,
}

/// A report in its formats.
#[derive(Debug)]
pub(in crate::cli) struct Written {
    pub(in crate::cli) text: String,
    pub(in crate::cli) json: String,
    pub(in crate::cli) junit: String,
}

impl Written {
    fn in_format(&self, format: ReportFormat) -> &str {
        match format {
            ReportFormat::Text => &self.text,
            ReportFormat::Json => &self.json,
            ReportFormat::Junit => &self.junit,
        }
    }
}

impl From<&Report> for Written {
    fn from(report: &Report) -> Self {
        Self {
            text: report.to_text(),
            json: report.to_json(),
            junit: report.to_junit(),
        }
    }
}

/// The fields of a JSON report that decide the exit status.
#[derive(Debug, Deserialize)]
struct Judgement {
    requests: u64,
    violations: u64,
    warnings: u64,
    findings: Vec<FoundRule>,
}

impl FailOn {
    fn is_met(self, verdict: &Judgement) -> bool {
        match self {
            Self::Violations => verdict.violations > 0,
            Self::Warnings => verdict.violations > 0 || verdict.warnings > 0,
        }
    }
}

impl GateArgs {
    /// Checks the flags before anything runs.
    pub(in crate::cli) fn check(&self) -> Result<(), CliError> {
        self.format().map(drop)
    }

    /// Returns the report's format, if it is to be written.
    fn format(&self) -> Result<Option<ReportFormat>, CliError> {
        let Some(path) = &self.report else {
            return Ok(None);
        };
        match ReportFormat::of(path) {
            Some(format) => Ok(Some(format)),
            None => Err(CliError::usage(NO_FORMAT)),
        }
    }

    /// Prints the findings, writes the report, and returns the exit status.
    pub(in crate::cli) fn finish(
        &self,
        report: &Written,
        origin: Origin,
        io: &mut Io<'_>,
    ) -> Result<u8, CliError> {
        let verdict: Judgement = serde_json::from_str(&report.json)
            .map_err(|error| CliError::new(format!("cannot read the report: {error}")))?;
        let is_failed = self.fail_on.is_some_and(|fail_on| fail_on.is_met(&verdict));
        self.print(&report.text, origin, is_failed, io);
        if let (Some(path), Some(format)) = (&self.report, self.format()?) {
            // The command of `exec` may have removed the folder, for example in a clean-up.
            fs::create_dir_all(path.parent().unwrap_or(Path::new("")))
                .and_then(|()| fs::write(path, report.in_format(format)))
                .map_err(|error| CliError::file("write the report", path, &error))?;
        }
        if self.fail_on.is_some() {
            github::write(&verdict.findings, &report.text, io)?;
            if verdict.requests == 0 {
                let _ = writeln!(io.err, "petstore-mock: {}", no_request(origin));
                return Ok(FINDINGS);
            }
        }
        Ok(if is_failed { FINDINGS } else { DONE })
    }

    /// Prints the report: as many lines as are allowed, and its last line.
    fn print(&self, text: &str, origin: Origin, is_failed: bool, io: &mut Io<'_>) {
        // It is not an error if the reader has closed the stream.
        if origin == Origin::Running {
            let _ = io
                .out
                .write_all(text.as_bytes())
                .and_then(|()| io.out.flush());
            return;
        }
        let most = if is_failed {
            MAX_LINES
        } else {
            MAX_LINES_OF_PASSED
        };
        let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
        let Some((summary, lines)) = lines.split_last() else {
            return;
        };
        let shown = &lines[..lines.len().min(most)];
        for line in shown {
            let _ = writeln!(io.err, "{line}");
        }
        let left = lines.len() - shown.len();
        if left > 0 {
            let place = match &self.report {
                Some(path) => format!("see {}", path.display()),
                None => "add --report FILE to get them".to_owned(),
            };
            let _ = writeln!(io.err, "petstore-mock: {left} more lines: {place}");
        }
        let _ = writeln!(io.err, "petstore-mock: {summary}");
    }
}

/// Says that there was no request, and why that usually happens.
fn no_request(origin: Origin) -> String {
    let hint = match origin {
        Origin::Exec => {
            "the command must send its requests to $PETSTORE_BASE_URL, with the key in \
                         $PETSTORE_API_KEY; look for a fixed address"
        }
        Origin::Serve | Origin::Running => "check the base URL of the client",
    };
    format!("no request reached the mock: {hint}")
}

impl ReportFormat {
    /// Returns the format for a file's extension.
    fn of(path: &Path) -> Option<Self> {
        Self::from_str(path.extension()?.to_str()?, false).ok()
    }
}
