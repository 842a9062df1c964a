//! `exec`: serves while a command runs, and ends with its exit status.

use std::{
    ffi::{OsStr, OsString},
    fs,
    hash::{BuildHasher as _, RandomState},
    io::{self, ErrorKind, Write as _},
    path::PathBuf,
    process::ExitStatus,
};

use clap::Args;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

use super::{
    flags::ServeArgs,
    outcome::{CliError, DONE, FAILED, NOT_EXECUTABLE, NOT_FOUND, variable},
    request_log::RequestLog,
    serve::{start, tell_of_unused},
    signals::{Signals, forward},
};
use crate::{plan::Plan, server::MockServer, state::DEFAULT_KEYS};

/// Variables that would override the variables set here.
const REMOVED: [&str; 2] = ["PETSTORE_PROFILE", "PETSTORE_API_KEY_FILE"];

/// Variables that name a file with trusted authorities. They are read by `petstore`; by Node; by
/// OpenSSL, Go, Python and rustls; by curl; and by Python's requests.
const CA_VARIABLES: [&str; 5] = [
    "PETSTORE_CA_FILE",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
];

/// Paths of the system's trusted authorities.
const SYSTEM_CAS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

const NO_REQUEST: &str = "the command must send its requests to $PETSTORE_BASE_URL, with the key in \
                          $PETSTORE_API_KEY; look for a fixed address";

#[derive(Args)]
#[command(
    after_help = "Example:\n  petstore-mock exec --senders 8 --fail-on warnings -- cargo test"
)]
pub(super) struct ExecArgs {
    /// Plan of the command's key: free, pro, business, enterprise or enterprise:MINUTE/DAY.
    #[arg(long, value_name = "PLAN", default_value = "free")]
    plan: Plan,

    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<OsString>,

    #[command(flatten)]
    serve: ServeArgs,
}

pub(super) async fn run(args: &ExecArgs) -> Result<u8, CliError> {
    // Signals are handled before the command starts, so that none can end this process without the
    // command.
    let mut signals = Signals::listen()?;
    let ExecArgs { plan, serve, .. } = args;
    let key = fresh_key();
    let mut builder = serve.builder(0)?;
    if !serve.has_keys() {
        // The command's key alone would replace the default keys.
        for (key, plan) in DEFAULT_KEYS {
            builder = builder.key(key, plan);
        }
    }
    let server = start(serve, builder.named_key("exec", &key, *plan)).await?;
    let mut command = command(&args.command, &server, &key);
    let _file = match server.ca_certificate() {
        Some(authority) => Some(trust(&mut command, authority).map_err(|error| {
            CliError::new(format!(
                "cannot prepare the certificates for the command: {error}; check SSL_CERT_FILE and \
                 TMPDIR"
            ))
        })?),
        None => None,
    };
    let mut child = command.spawn().map_err(|error| {
        let program = command.as_std().get_program().display();
        let status = match error.kind() {
            ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        };
        CliError::new(format!("cannot run {program}: {error}")).with_status(status)
    })?;
    let (journal, faults) = (server.journal(), server.faults().clone());
    let mut log = RequestLog::new(server.journal(), serve.verbose);
    let ended = wait(&mut child, &mut signals, &mut log).await?;
    server.stop().await;
    log.print();
    tell_of_unused(&faults);
    let report = journal.report();
    serve.gate.print(&report);
    let status = status(ended);
    match serve.gate.judge(&report, NO_REQUEST) {
        verdict if status == DONE => verdict,
        Ok(_) => Ok(status),
        Err(error) => Err(error.with_status(status)),
    }
}

fn command(words: &[OsString], server: &MockServer, key: &str) -> Command {
    let mut words = words.iter();
    // clap requires at least one word.
    let mut command = Command::new(words.next().map_or(OsStr::new(""), OsStr::new));
    command
        .args(words)
        .env("PETSTORE_BASE_URL", server.url())
        .env("PETSTORE_API_KEY", key)
        .env("PETSTORE_MOCK_URL", server.origin());
    for name in REMOVED {
        command.env_remove(name);
    }
    command
}

/// Waits for the command, passes signals on to it, and logs requests.
async fn wait(
    child: &mut Child,
    signals: &mut Signals,
    log: &mut RequestLog,
) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            ended = child.wait() => return ended,
            () = log.changed() => log.print(),
            signal = signals.next() => {
                if let Some(id) = child.id() {
                    forward(signal, id);
                }
            }
        }
    }
}

/// Returns a random key. The standard library seeds its hashers with random numbers of the system.
fn fresh_key() -> String {
    let half = || RandomState::new().hash_one(0);
    format!("exec-{:016x}{:016x}", half(), half())
}

fn status(ended: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&ended) {
        return u8::try_from(signal).map_or(FAILED, |signal| {
            super::outcome::SIGNALLED.saturating_add(signal)
        });
    }
    // A status that does not fit into a byte, as on Windows, becomes a failure.
    ended
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(FAILED)
}

/// Makes a command trust the mock's authority, through a file that lives as long as the returned
/// value. The file also contains the authorities that were trusted before.
fn trust(command: &mut Command, authority: &str) -> io::Result<NamedTempFile> {
    let system = || {
        SYSTEM_CAS
            .map(PathBuf::from)
            .into_iter()
            .find(|path| path.exists())
    };
    let trusted = variable("SSL_CERT_FILE").map(PathBuf::from).or_else(system);
    let others = trusted.map(fs::read).transpose()?.unwrap_or_default();
    let mut file = tempfile::Builder::new()
        .prefix("petstore-mock-")
        .suffix(".pem")
        .tempfile()?;
    file.write_all(&[authority.as_bytes(), b"\n", &others].concat())?;
    for name in CA_VARIABLES {
        command.env(name, file.path());
    }
    Ok(file)
}
