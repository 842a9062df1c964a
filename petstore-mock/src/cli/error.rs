//! Why serving can't begin, each with what can be done about it, and with which exit status the
//! process ends.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::exit;
use crate::{plan::ParsePlanError, server::StartError, state::SeedError};

/// Why `serve` or `exec` failed; the message is one line, and repeats no key.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServeError {
    /// A `--key` has no plan.
    #[error("a --key has no `=`: give it as KEY=PLAN, such as --key my-key=free")]
    KeyWithoutPlan,
    /// A `--key` has a plan that does not exist.
    #[error("a --key has no known plan after its last `=`: {0}")]
    Plan(ParsePlanError),
    /// Two `--key` name the same key.
    #[error("a --key names a key that another one names already: give each key once")]
    RepeatedKey,
    /// A file can't be read or written.
    #[error("can't {action} {path}: {source}", path = path.display())]
    File {
        /// What was to be done with it.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The file with the faults is wrong.
    #[error("{path}: {message}; give an array of faults, such as [{{\"effect\": {{\"status\": 503}}}}]", path = path.display())]
    Faults { path: PathBuf, message: String },
    /// The seed file is no seed.
    #[error("{path}{place}: {source}", path = path.display(), place = place(source))]
    Seed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        source: SeedError,
    },
    /// The name of the report's file says nothing of its format.
    #[error(
        "can't tell the format of the --report from its name: let it end with .txt, .json, .xml, \
         .md or .html, or add --report-format"
    )]
    ReportFormat,
    /// The server can't be started.
    #[error("{0}{hint}", hint = hint(.0))]
    Start(StartError),
    /// The process can't be made ready to serve.
    #[error("can't prepare to serve: {0}")]
    Prepare(#[from] io::Error),
}

impl ServeError {
    pub(super) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { action, path: path.to_owned(), source }
    }

    /// Returns the exit status that goes with it: 2 for what was typed wrong, else 1.
    pub(super) const fn exit_status(&self) -> u8 {
        match self {
            Self::KeyWithoutPlan
            | Self::Plan(_)
            | Self::RepeatedKey
            | Self::ReportFormat
            | Self::Start(StartError::Key(_) | StartError::AdminToken) => exit::USAGE,
            _ => exit::FAILED,
        }
    }
}

fn place(error: &SeedError) -> String {
    match (error.line(), error.column()) {
        (Some(line), Some(column)) => format!(":{line}:{column}"),
        _ => String::new(),
    }
}

fn hint(error: &StartError) -> &'static str {
    let StartError::Bind { source, .. } = error else {
        return "";
    };
    match source.kind() {
        io::ErrorKind::AddrInUse => "; choose another port with --port (0 takes a free one)",
        io::ErrorKind::AddrNotAvailable => "; choose an address of this machine with --addr",
        io::ErrorKind::PermissionDenied => "; choose a port from 1024 on with --port",
        _ => "",
    }
}
