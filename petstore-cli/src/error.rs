//! Errors: a kind, which determines the exit code, a message and a hint.

use std::fmt;
use std::io;

use petstore_client::Error;
use serde::Serialize;
use serde_json::{Map, Value};

/// The format of errors and notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ErrorFormat {
    /// Lines for people
    Text,
    /// A JSON object on each line
    Json,
}

/// The kinds of failure, with their names in `--error-format json`.
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
    HungUp,
}

impl Kind {
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
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

/// A result whose error ends the command, unless another error is named.
pub(crate) type Result<T, E = CliError> = std::result::Result<T, E>;

/// The error that ends a command.
#[derive(Debug)]
pub(crate) enum CliError {
    /// An error of the program.
    Failure(Box<Failure>),
    /// An error of a request. Its message is created when it is printed.
    Client(Box<Error>),
    /// An exit code without a message, because the message was already printed, or the reader
    /// closed the pipe.
    Silent(u8),
}

/// A failure with its message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    /// Details, shown below the message.
    pub(crate) list: Vec<String>,
    pub(crate) hint: Option<String>,
    /// Additional fields for programs.
    pub(crate) fields: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            kind,
            message,
            list: Vec::new(),
            hint: None,
            fields: Map::new(),
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says how much was done before the failure.
    pub(crate) fn stopped_after(mut self, done: &str) -> Self {
        self.message = match self.kind {
            Kind::Interrupted | Kind::Terminated | Kind::HungUp => {
                format!("{} after {done}", self.message)
            }
            _ => format!("stopped after {done}: {}", self.message),
        };
        self
    }
}

impl CliError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self::Failure(Box::new(Failure::new(kind, message)))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(Kind::Input, message)
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(Kind::Config, message)
    }

    pub(crate) fn key(message: impl Into<String>) -> Self {
        Self::new(Kind::Key, message)
    }

    /// Returns the error of an action on a file, with the system's reason.
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

    /// Returns the error of a result that could not be written after something was done. A hint
    /// could make the user do it twice.
    pub(crate) fn after(mut self, done: impl fmt::Display) -> Self {
        if let Self::Failure(failure) = &mut self {
            failure.kind = Kind::Partial;
            failure.hint = None;
            failure.message += &format!("; {done}");
        }
        self
    }

    /// Names the variable or file that has the wrong value.
    pub(crate) fn with_source(mut self, source: &str) -> Self {
        if let Self::Failure(failure) = &mut self {
            failure.message += &format!(" (from {source})");
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

impl From<Failure> for CliError {
    fn from(failure: Failure) -> Self {
        Self::Failure(Box::new(failure))
    }
}

impl From<Error> for CliError {
    fn from(error: Error) -> Self {
        Self::Client(Box::new(error))
    }
}

/// An error while writing a result. A reader that closed the pipe is not an error.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Silent(0);
        }
        Self::io(Kind::Internal, "cannot write the result", &error)
    }
}

/// Returns the system's description of an error, without its number.
pub(crate) fn os_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::StorageFull => "no space left on the disk".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        kind @ io::ErrorKind::PermissionDenied => kind.to_string(),
        _ => error.to_string(),
    }
}
