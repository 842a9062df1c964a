//! What ends a command: a kind (its exit code), a cause, and hints on what to do.

use std::error::Error as StdError;
use std::io;

use http::header::RETRY_AFTER;
use petstore_client::{Error as ClientError, ErrorKind};

use crate::exit::Exit;

/// Any cause.
type Cause = Box<dyn StdError + Send + Sync>;

#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    pub(crate) cause: Cause,
    pub(crate) hints: Vec<String>,
}

impl CliError {
    pub(crate) fn new(exit: Exit, cause: impl Into<Cause>) -> Self {
        Self { exit, cause: cause.into(), hints: Vec::new() }
    }

    pub(crate) fn usage(problem: impl Into<String>) -> Self {
        Self::new(Exit::Usage, problem.into())
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns the root of the chain of causes, where it says more than the error itself.
    pub(crate) fn root(&self) -> Option<String> {
        let mut root = self.cause.source()?;
        while let Some(deeper) = root.source() {
            root = deeper;
        }
        let root = root.to_string();
        (!self.cause.to_string().contains(&root)).then_some(root)
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let exit = exit_of(&error);
        let hints = hints_for(&error);
        Self { exit, cause: error.into(), hints }
    }
}

/// Failing to write a result. A reader that went away has had what it wanted.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Done, error);
        }
        Self::new(Exit::Internal, format!("could not write the result: {error}"))
    }
}

fn exit_of(error: &ClientError) -> Exit {
    match error.kind() {
        ErrorKind::Config | ErrorKind::Credentials | ErrorKind::Unauthorized => Exit::Config,
        ErrorKind::InvalidRequest => Exit::Usage,
        ErrorKind::NotFound | ErrorKind::Gone => Exit::NotFound,
        ErrorKind::RateLimited => Exit::RateLimited,
        ErrorKind::Rejected => match error.status().map_or(0, |status| status.as_u16()) {
            300..=399 => Exit::Config,
            400..=499 => Exit::Refused,
            _ => Exit::Service,
        },
        ErrorKind::Connect | ErrorKind::Tls | ErrorKind::Timeout | ErrorKind::Interrupted => {
            Exit::Network
        }
        _ => Exit::Service,
    }
}

fn hints_for(error: &ClientError) -> Vec<String> {
    let mut hints = Vec::new();
    let mut hint = |text: &str| hints.push(text.to_owned());
    if error.kind() == ErrorKind::Config && error.to_string().contains("allow_insecure_http") {
        hint("`--allow-insecure-http` allows it");
    }
    if error.is_unauthorized() {
        hint(
            "set PETSTORE_API_KEY to a key that this service accepts, or keep one: `petstore auth login`",
        );
    }
    if error.kind() == ErrorKind::Tls {
        hint("`--ca-file FILE` trusts another certificate authority beside the system's");
    } else if error.is_connect() {
        hint("`petstore --mock …` runs any command against a server of its own");
    }
    if let Some(asked) = error.headers().and_then(|headers| headers.get(RETRY_AFTER))
        && error.kind() == ErrorKind::Server
    {
        let asked = String::from_utf8_lossy(asked.as_bytes());
        hint(&format!(
            "the service asks to be left alone (`Retry-After: {asked}`); \
             `--max-wait SECONDS` waits longer where sending again is safe"
        ));
    }
    if error.is_rate_limited() {
        hint(
            "`--max-wait SECONDS` waits longer; asking again before the time may get the key banned",
        );
    }
    let foreign = error.kind() == ErrorKind::Decode && error.decode_path() == Some(".");
    if error.code() == Some("route_not_found") || foreign {
        hint("does the base URL end with the version, such as `/v1`?");
    }
    if error.kind() == ErrorKind::Gone {
        hint("`petstore pets list` replaces `petstore pets get`");
    }
    hints
}
