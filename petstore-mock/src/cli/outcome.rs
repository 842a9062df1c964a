//! The input and output of a command, its exit statuses and its error.

use std::{ffi::OsString, fmt, io, path::Path};

use crate::server::StartError;

/// Streams and variables for a command.
pub struct Io<'a> {
    /// The stream for results.
    pub out: &'a mut dyn io::Write,
    /// The stream for messages.
    pub err: &'a mut dyn io::Write,
    /// Whether `out` is a terminal. `serve` writes more to a terminal than to a pipe.
    pub is_terminal: bool,
    /// Whether `serve` and `exec` log each request on `err`.
    pub is_verbose: bool,
    /// Looks up a variable of the environment: `PETSTORE_MOCK_ADMIN_TOKEN`, `PETSTORE_MOCK_PORT`,
    /// `SSL_CERT_FILE`, `GITHUB_ACTIONS` and `GITHUB_STEP_SUMMARY`. The variables of flags are read by `clap`.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io")
            .field("is_terminal", &self.is_terminal)
            .field("is_verbose", &self.is_verbose)
            .finish_non_exhaustive()
    }
}

/// Success.
pub(super) const DONE: u8 = 0;
/// The mock could not serve, or the mock that `health` checked is not ready.
pub(super) const FAILED: u8 = 1;
/// The command line is wrong.
pub(super) const USAGE: u8 = 2;
/// The compliance report has findings that `--fail-on` names, or too few requests.
pub(super) const FINDINGS: u8 = 3;
/// The command of `exec` cannot be run; as in shells.
pub(super) const NOT_EXECUTABLE: u8 = 126;
/// The command of `exec` does not exist; as in shells.
pub(super) const NOT_FOUND: u8 = 127;
/// The exit status after a signal: 128 and its number, as in shells.
#[cfg(unix)]
pub(super) const SIGNALLED: u8 = 128;

/// The error of a command. The message is one line without keys.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct CliError {
    message: String,
    status: u8,
}

impl CliError {
    /// Returns the error with another exit status.
    pub(super) fn with_status(self, status: u8) -> Self {
        Self { status, ..self }
    }

    pub(super) fn status(&self) -> u8 {
        self.status
    }

    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            status: FAILED,
        }
    }

    /// An error in the arguments.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            status: USAGE,
        }
    }

    /// A file that cannot be read or written.
    pub(super) fn file(action: &str, path: &Path, source: &io::Error) -> Self {
        Self::new(format!("cannot {action} {}: {source}", path.display()))
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::new(format!("cannot prepare to serve: {error}"))
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        match &error {
            StartError::Key(_) | StartError::AdminToken => Self::usage(error.to_string()),
            StartError::Bind { source, .. } => Self::new(format!("{error}{}", hint(source.kind()))),
            _ => Self::new(error.to_string()),
        }
    }
}

fn hint(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrInUse => "; choose another port with --port (0 takes a free one)",
        io::ErrorKind::AddrNotAvailable => "; choose an address of this machine with --addr",
        io::ErrorKind::PermissionDenied => "; choose a port from 1024 on with --port",
        _ => "",
    }
}
