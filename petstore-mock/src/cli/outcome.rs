//! The exit statuses and the error of the commands, and the process's streams and environment.

use std::{
    ffi::OsString,
    fmt,
    io::{self, Write as _},
    path::Path,
};

use crate::server::StartError;

/// Success.
pub(super) const DONE: u8 = 0;
/// The mock could not serve, or the mock that `health` checked is not ready.
pub(super) const FAILED: u8 = 1;
/// The command line is wrong.
pub(super) const USAGE: u8 = 2;
/// The compliance report has findings that `--fail-on` names, or there was no request.
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
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            status: FAILED,
        }
    }

    /// An error in the arguments.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(message).with_status(USAGE)
    }

    /// A file that cannot be read or written.
    pub(super) fn file(action: &str, path: &Path, source: &io::Error) -> Self {
        Self::new(format!("cannot {action} {}: {source}", path.display()))
    }

    /// Returns the error with another exit status.
    pub(super) fn with_status(self, status: u8) -> Self {
        Self { status, ..self }
    }

    pub(super) fn status(&self) -> u8 {
        self.status
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
            StartError::Bind { cause, .. } => Self::new(format!("{error}{}", hint(cause.kind()))),
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

/// Writes a result to stdout. It is not an error if the reader has closed the stream.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::new(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to stderr. If that fails, nobody can be told.
pub(super) fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Returns a variable of the environment, unless it is empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the command line reads its environment here"
)]
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
