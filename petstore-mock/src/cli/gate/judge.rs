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

/// The maximum number of printed lines of a report.
const MAX_LINES: usize = 40;

const NO_FORMAT: &str = "cannot tell the format of the --report from its name: let it end with .txt, \
                         .json, .xml or .md, or add --report-format";

/// The flags of the compliance report.
#[derive(Args, Clone)]
#[command(next_help_heading = "Report")]
pub(in crate::cli) struct GateArgs {
    /// File to write the compliance report to.
    ///
    /// Its extension sets the format: .txt, .json, .xml (JUnit) or .md.
    #[arg(
        long,
        env = "PETSTORE_MOCK_REPORT",
        hide_env = true,
        value_name = "FILE"
    )]
    report: Option<PathBuf>,

    /// Format of that file, regardless of its extension.
    #[arg(
        long,
        env = "PETSTORE_MOCK_REPORT_FORMAT",
        hide_env = true,
        value_name = "FORMAT",
        requires = "report"
    )]
    report_format: Option<ReportFormat>,

    /// Exit with 3 if the report has violations; with `warnings`, also if it has warnings.
    ///
    /// The findings are printed on stderr.
    #[arg(
        long,
        env = "PETSTORE_MOCK_FAIL_ON",
        hide_env = true,
        value_name = "SEVERITY"
    )]
    fail_on: Option<FailOn>,

    /// Exit with 3 if there were fewer requests (default: 0; with `--fail-on` of exec and report: 1).
    #[arg(
        long,
        env = "PETSTORE_MOCK_MIN_REQUESTS",
        hide_env = true,
        value_name = "N"
    )]
    min_requests: Option<u64>,

    /// Whether `--fail-on` writes annotations and a summary under GitHub Actions.
    #[arg(
        long,
        env = "PETSTORE_MOCK_GITHUB",
        hide_env = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    github: Github,
}

/// The formats. The aliases are the extensions of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    #[value(alias = "txt")]
    Text,
    Json,
    #[value(alias = "xml")]
    Junit,
    #[value(alias = "md")]
    Markdown,
}

/// What fails a run. The aliases are the severities as `--rule` and the report spell them.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailOn {
    #[value(alias = "violation")]
    Violations,
    #[value(alias = "warning")]
    Warnings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Github {
    /// If the variable GITHUB_ACTIONS is `true`.
    Auto,
    Off,
}

/// Where the report comes from. What is printed, and how many requests are expected, depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Origin {
    /// The server of `serve`.
    Serve,
    /// The server of `exec`.
    Exec,
    /// A running mock, whose whole report is on stdout.
    Running,
}

/// A report in the formats that the gate needs.
#[derive(Debug)]
pub(in crate::cli) struct Written {
    /// The lines to print.
    pub(in crate::cli) printed: String,
    pub(in crate::cli) text: String,
    pub(in crate::cli) json: String,
    pub(in crate::cli) junit: String,
    pub(in crate::cli) markdown: String,
}

impl Written {
    fn in_format(&self, format: ReportFormat) -> &str {
        match format {
            ReportFormat::Text => &self.text,
            ReportFormat::Json => &self.json,
            ReportFormat::Junit => &self.junit,
            ReportFormat::Markdown => &self.markdown,
        }
    }
}

impl From<&Report> for Written {
    fn from(report: &Report) -> Self {
        Self {
            printed: report.client_text(),
            text: report.to_text(),
            json: report.to_json(),
            junit: report.to_junit(),
            markdown: report.to_markdown(),
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
        let format = self.report_format.or_else(|| ReportFormat::of(path));
        match format {
            Some(format) => Ok(Some(format)),
            None => Err(CliError::usage(NO_FORMAT)),
        }
    }

    /// Returns the minimum number of requests.
    fn min_requests(&self, origin: Origin) -> u64 {
        let default = match origin {
            Origin::Serve => 0,
            Origin::Exec | Origin::Running => u64::from(self.fail_on.is_some()),
        };
        self.min_requests.unwrap_or(default)
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
        self.print(&report.printed, origin, is_failed, io);
        if let (Some(path), Some(format)) = (&self.report, self.format()?) {
            // The command of `exec` may have removed the folder, for example in a clean-up.
            fs::create_dir_all(path.parent().unwrap_or(Path::new("")))
                .and_then(|()| fs::write(path, report.in_format(format)))
                .map_err(|error| CliError::file("write the report", path, &error))?;
        }
        if self.fail_on.is_some() && self.github == Github::Auto {
            github::write(&verdict.findings, &report.markdown, io)?;
        }
        let wanted = self.min_requests(origin);
        if verdict.requests < wanted {
            let _ = writeln!(
                io.err,
                "petstore-mock: {}",
                too_few(verdict.requests, wanted, origin)
            );
            return Ok(FINDINGS);
        }
        Ok(if is_failed { FINDINGS } else { DONE })
    }

    /// Prints the report. That is its first line, or if the report fails the run, as many lines as
    /// are allowed.
    fn print(&self, text: &str, origin: Origin, is_failed: bool, io: &mut Io<'_>) {
        // It is not an error if the reader has closed the stream.
        if origin == Origin::Running {
            let _ = io
                .out
                .write_all(text.as_bytes())
                .and_then(|()| io.out.flush());
            return;
        }
        let mut lines = text.lines();
        let _ = writeln!(
            io.err,
            "petstore-mock: {}",
            lines.next().unwrap_or_default()
        );
        if !is_failed {
            return;
        }
        for line in lines.by_ref().take(MAX_LINES - 2) {
            let _ = writeln!(io.err, "{line}");
        }
        let left = lines.count();
        if left > 0 {
            let place = match &self.report {
                Some(path) => format!("see {}", path.display()),
                None => "add --report FILE to get them".to_owned(),
            };
            let _ = writeln!(io.err, "petstore-mock: {left} more lines: {place}");
        }
    }
}

/// Says that there were too few requests, and why that usually happens.
fn too_few(requests: u64, wanted: u64, origin: Origin) -> String {
    let hint = match origin {
        Origin::Exec => {
            "the command must send its requests to $PETSTORE_BASE_URL, with the key in \
                         $PETSTORE_API_KEY; look for a fixed address"
        }
        Origin::Serve | Origin::Running => "check the base URL of the client",
    };
    format!("{requests} of at least {wanted} expected requests reached the mock: {hint}")
}

impl ReportFormat {
    /// Returns the format for a file's extension.
    fn of(path: &Path) -> Option<Self> {
        Self::from_str(path.extension()?.to_str()?, false).ok()
    }
}
