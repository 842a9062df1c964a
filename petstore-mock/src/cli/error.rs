//! Why serving can't begin, each with what can be done about it, and with which exit status the
//! process ends.

use std::{io, path::PathBuf};

use super::exit;
use crate::{plan::ParsePlanError, seed::SeedError, server::StartError};

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
    /// The seed file can't be read.
    #[error("can't read the seed {path}: {source}", path = path.display())]
    ReadSeed {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file with the admin token can't be read.
    #[error("can't read the admin token {path}: {source}", path = path.display())]
    ReadToken {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
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
    /// The report can't be written.
    #[error("can't write the report {path}: {source}", path = path.display())]
    WriteReport {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The server can't be started.
    #[error("{0}{hint}", hint = hint(.0))]
    Start(StartError),
    /// The port file can't be written.
    #[error("can't write the port file {path}: {source}", path = path.display())]
    PortFile {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The certificate of the authority can't be written.
    #[cfg(feature = "tls")]
    #[error("can't write the CA certificate {path}: {source}", path = path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The process can't be made ready to serve.
    #[error("can't prepare to serve: {0}")]
    Prepare(#[from] io::Error),
}

impl ServeError {
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
