//! `exec`: serves while a command runs that is told where, and ends as it ends.

use std::{
    ffi::OsStr,
    hash::{BuildHasher as _, RandomState},
    io::ErrorKind,
    process::ExitStatus,
};

use tokio::process::{Child, Command};

#[cfg(feature = "tls")]
use super::trust::Trust;
use super::{
    Io, ServeError,
    command::ExecArgs,
    exit,
    serve::start,
    signals::{Signals, forward},
};
use crate::{server::Builder, server::MockServer, state::DEFAULT_KEYS};

/// Where the command finds the service.
const BASE_URL: &str = "PETSTORE_BASE_URL";
/// The key it is to use.
const API_KEY: &str = "PETSTORE_API_KEY";
/// Where it finds the mock's administration, below `/_mock`.
const MOCK_URL: &str = "PETSTORE_MOCK_URL";
/// What would keep the command from using what it is given here.
const OTHERS: [&str; 2] = ["PETSTORE_PROFILE", "PETSTORE_API_KEY_FILE"];

pub(super) async fn run(args: &ExecArgs, io: &mut Io<'_>) -> Result<u8, ServeError> {
    // Before the command is there: a signal that comes then must not end this without it.
    let mut signals = Signals::listen()?;
    args.serve.report.format()?;
    let key = fresh_key();
    let port = args.serve.port.unwrap_or(0);
    let builder = with_default_keys(args, args.serve.builder()?.port(port))
        .named_key("exec", &key, args.plan);
    let server = start(&args.serve, builder, io).await?;
    let mut command = command(args, &server, &key);
    #[cfg(feature = "tls")]
    let trust =
        server.ca_certificate().map(|ca| Trust::new(ca, io.trusted.as_deref())).transpose()?;
    #[cfg(feature = "tls")]
    if let Some(trust) = &trust {
        trust.tell(&mut command);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let name = command.as_std().get_program().display();
            let _ = writeln!(io.err, "petstore-mock: can't run {name}: {error}");
            let is_missing = error.kind() == ErrorKind::NotFound;
            return Ok(if is_missing { exit::NOT_FOUND } else { exit::NOT_EXECUTABLE });
        }
    };
    let ended = wait(&mut child, &mut signals).await?;
    let journal = server.journal();
    server.stop().await;
    let verdict = args.serve.report.finish(&journal.report(), io)?;
    let status = status(ended);
    Ok(if status == exit::DONE { verdict } else { status })
}

fn command(args: &ExecArgs, server: &MockServer, key: &str) -> Command {
    let mut words = args.command.iter();
    // There is one, or clap had refused.
    let mut command = Command::new(words.next().map_or(OsStr::new(""), OsStr::new));
    command.args(words).env(BASE_URL, server.url()).env(API_KEY, key);
    command.env(MOCK_URL, server.origin());
    for name in OTHERS {
        command.env_remove(name);
    }
    command
}

/// Waits for the command, however long it takes, and passes signals on to it.
async fn wait(child: &mut Child, signals: &mut Signals) -> std::io::Result<ExitStatus> {
    loop {
        tokio::select! {
            ended = child.wait() => return ended,
            signal = signals.next() => {
                if let Some(id) = child.id() {
                    forward(signal, id);
                }
            }
        }
    }
}

/// The keys there are unless others are given: the command's own would replace them.
fn with_default_keys(args: &ExecArgs, builder: Builder) -> Builder {
    if args.serve.has_keys() {
        return builder;
    }
    DEFAULT_KEYS.into_iter().fold(builder, |builder, (key, plan)| builder.key(key, plan))
}

/// A key that nobody else has; the standard library seeds its hashers from the system's randomness.
fn fresh_key() -> String {
    let half = || RandomState::new().hash_one(0);
    format!("exec-{:016x}{:016x}", half(), half())
}

#[cfg(unix)]
fn status(ended: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = ended.signal().and_then(|signal| u8::try_from(signal).ok());
    match signal {
        Some(signal) => exit::SIGNALLED.saturating_add(signal),
        None => code(ended),
    }
}

#[cfg(not(unix))]
fn status(ended: ExitStatus) -> u8 {
    code(ended)
}

/// A status that does not fit, as Windows has them, stays a failure.
fn code(ended: ExitStatus) -> u8 {
    ended.code().map_or(exit::FAILED, |code| u8::try_from(code).unwrap_or(exit::FAILED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_another_and_long_enough_not_to_be_guessed() {
        let (one, other) = (fresh_key(), fresh_key());
        assert_ne!(one, other);
        assert_eq!(one.len(), "exec-".len() + 32);
    }
}
