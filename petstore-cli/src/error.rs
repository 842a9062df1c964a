//! What ends a command: a kind, which decides the exit code, what is wrong, and one thing to do.

use std::fmt;
use std::io;

use petstore_client::Error as ClientError;
use serde::Serialize;
use serde_json::{Map, Value};

/// The kinds of failure, by the names that programs read (`--error-format json`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Internal,
    Usage,
    Input,
    Config,
    Key,
    Refused,
    Service,
    Decode,
    TooLarge,
    Network,
    Tls,
    Timeout,
    RateLimited,
    Banned,
    Partial,
    NotFound,
    Interrupted,
    Terminated,
}

impl Kind {
    /// Returns the exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Usage | Self::Input => 2,
            Self::Config | Self::Key => 3,
            Self::Refused => 4,
            Self::Service | Self::Decode | Self::TooLarge => 5,
            Self::Network | Self::Tls | Self::Timeout => 6,
            Self::RateLimited | Self::Banned => 7,
            Self::Partial => 8,
            Self::NotFound => 9,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

/// What ends a command.
#[derive(Debug)]
pub(crate) enum CliError {
    /// What the program found wrong.
    Failure(Box<Failure>),
    /// What a request ended with; it is put into words when it is printed.
    Client(Box<ClientError>),
    /// No message is needed: the reader of the result went away, or the message was printed.
    Silent(u8),
}

/// A failure in words.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    /// Single findings, shown below the message.
    pub(crate) list: Vec<String>,
    pub(crate) hint: Option<String>,
    /// What else programs may read.
    pub(crate) fields: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, list: Vec::new(), hint: None, fields: Map::new() }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl CliError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self::Failure(Box::new(Failure::new(kind, message)))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Says what could not be done with a file, and what the system says of it.
    pub(crate) fn io(kind: Kind, action: impl fmt::Display, problem: &io::Error) -> Self {
        Self::new(kind, format!("{action}: {}", os_text(problem)))
    }

    pub(crate) fn internal(problem: impl fmt::Display) -> Self {
        Self::new(Kind::Internal, format!("internal error: {problem}"))
            .hint("please report it with the output of `petstore --version`")
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        self.hint_if(Some(hint.into()))
    }

    pub(crate) fn hint_if(mut self, hint: Option<String>) -> Self {
        if let Self::Failure(failure) = &mut self {
            failure.hint = hint;
        }
        self
    }

    pub(crate) fn list(mut self, list: Vec<String>) -> Self {
        if let Self::Failure(failure) = &mut self {
            failure.list = list;
        }
        self
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}

/// Failing to write a result. A reader that went away has had what it wanted.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Silent(0);
        }
        Self::io(Kind::Internal, "cannot write the result", &error)
    }
}

/// Returns what the system says of a failure, without its number.
pub(crate) fn os_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::StorageFull => "no space left on the disk".to_owned(),
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network unreachable".to_owned(),
        io::ErrorKind::HostUnreachable => "host unreachable".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

/// What is wrong with a value, as it follows the value: `is not a time`.
#[derive(Debug, Clone)]
pub(crate) struct Invalid {
    pub(crate) problem: String,
    pub(crate) hint: Option<String>,
}

impl Invalid {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts the name of what is wrong before the problem.
    pub(crate) fn named(self, name: impl fmt::Display) -> Self {
        let space = if self.problem.starts_with(':') { "" } else { " " };
        Self { problem: format!("{name}{space}{}", self.problem), ..self }
    }

    /// Returns the error of a value that did not come from a flag.
    pub(crate) fn of(self, kind: Kind, name: impl fmt::Display) -> CliError {
        let Self { problem, hint } = self.named(name);
        CliError::new(kind, problem).hint_if(hint)
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Invalid {}

/// Joins names: `a, b or c`.
pub(crate) fn either(names: &[String]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        names => names.join(", "),
    }
}
