//! `exec`: serves while a command runs, and ends with its exit status.

#[cfg(feature = "tls")]
use std::path::PathBuf;
use std::{
    ffi::{OsStr, OsString},
    hash::{BuildHasher as _, RandomState},
    io::ErrorKind,
    process::ExitStatus,
};

use clap::Args;
use tokio::process::{Child, Command};

use super::{
    flags::ServeArgs,
    gate::{Origin, Written},
    outcome::{CliError, DONE, FAILED, Io, NOT_EXECUTABLE, NOT_FOUND},
    request_log::RequestLog,
    serve::start,
    signals::{Signals, forward},
};
use crate::{plan::Plan, server::MockServer, state::DEFAULT_KEYS};

/// Variables that would override the variables set here.
const REMOVED: [&str; 2] = ["PETSTORE_PROFILE", "PETSTORE_API_KEY_FILE"];

/// Variables that name a file with trusted authorities. They are read by `petstore`; by Node; by
/// OpenSSL, Go, Python and rustls; by curl; and by Python's requests.
#[cfg(feature = "tls")]
const CA_VARIABLES: [&str; 5] = [
    "PETSTORE_CA_FILE",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
];

#[derive(Args, Clone)]
#[command(
    after_help = "Example:\n  petstore-mock exec --senders 8 --fail-on warnings -- cargo test"
)]
pub(super) struct ExecArgs {
    /// Plan of the command's key: free, pro, business, enterprise, enterprise:MINUTE/DAY or
    /// enterprise:MINUTE/HOUR/DAY.
    #[arg(
        long,
        env = "PETSTORE_MOCK_PLAN",
        hide_env = true,
        value_name = "PLAN",
        default_value = "free"
    )]
    plan: Plan,

    /// The command and its arguments.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<OsString>,

    #[command(flatten)]
    serve: ServeArgs,
}

pub(super) async fn run(args: &ExecArgs, io: &mut Io<'_>) -> Result<u8, CliError> {
    // Signals are handled before the command starts, so that none can end this process without the
    // command.
    let mut signals = Signals::listen()?;
    args.serve.gate.check()?;
    let key = fresh_key();
    let mut builder = args
        .serve
        .builder()?
        .port(args.serve.server.port().unwrap_or(0));
    if args.serve.service.keys.is_empty() {
        // The command's key alone would replace the default keys.
        builder = DEFAULT_KEYS
            .iter()
            .fold(builder, |builder, (key, plan)| builder.key(*key, *plan));
    }
    let builder = builder.named_key("exec", &key, args.plan);
    let server = start(&args.serve, builder, io).await?;
    let mut command = command(args, &server, &key);
    #[cfg(feature = "tls")]
    let _file = match server.ca_certificate() {
        Some(authority) => Some({
            let trusted = (io.variable)("SSL_CERT_FILE").map(PathBuf::from);
            let file = trust(&mut command, authority, trusted.as_deref())
                .map_err(|error| no_certificates(&error))?;
            let settings = trust_for_wget(&mut command, file.path(), io)
                .map_err(|error| no_certificates(&error))?;
            (file, settings)
        }),
        None => None,
    };
    let mut child = command.spawn().map_err(|error| {
        let message = format!(
            "cannot run {}: {error}",
            command.as_std().get_program().display()
        );
        let status = match error.kind() {
            ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        };
        CliError::new(message).with_status(status)
    })?;
    let journal = server.journal();
    let mut log = RequestLog::new(server.journal(), io);
    let ended = wait(&mut child, &mut signals, &mut log, io).await?;
    server.stop().await;
    log.print(io);
    let status = status(ended);
    let report = Written::from(&journal.report());
    match args.serve.gate.finish(&report, Origin::Exec, io) {
        verdict if status == DONE => verdict,
        Ok(_) => Ok(status),
        Err(error) => Err(error.with_status(status)),
    }
}

fn command(args: &ExecArgs, server: &MockServer, key: &str) -> Command {
    let mut words = args.command.iter();
    // clap requires at least one word.
    let mut command = Command::new(words.next().map_or(OsStr::new(""), OsStr::new));
    command
        .args(words)
        .env("PETSTORE_BASE_URL", server.url())
        .env("PETSTORE_API_KEY", key);
    command.env("PETSTORE_MOCK_URL", server.origin());
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
    io: &mut Io<'_>,
) -> std::io::Result<ExitStatus> {
    loop {
        tokio::select! {
            ended = child.wait() => return ended,
            () = log.changed() => log.print(io),
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
/// value. The file also contains the authorities that were trusted before, which `trusted` names.
#[cfg(feature = "tls")]
fn trust(
    command: &mut Command,
    authority: &str,
    trusted: Option<&std::path::Path>,
) -> std::io::Result<tempfile::NamedTempFile> {
    use std::{fs, io::Write as _, path::Path};
    /// Paths of the system's trusted authorities.
    const SYSTEM: [&str; 4] = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];
    let system = || SYSTEM.map(Path::new).into_iter().find(|path| path.exists());
    let others = trusted
        .or_else(system)
        .map(fs::read)
        .transpose()?
        .unwrap_or_default();
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

#[cfg(feature = "tls")]
fn no_certificates(error: &std::io::Error) -> CliError {
    CliError::new(format!(
        "cannot prepare the certificates for the command: {error}; check SSL_CERT_FILE and TMPDIR"
    ))
}

/// Makes GNU wget trust the authorities in a file. wget reads no variable for that, so this writes
/// a file of settings, which lives as long as the returned value. It contains the user's settings
/// too.
#[cfg(feature = "tls")]
fn trust_for_wget(
    command: &mut Command,
    authorities: &std::path::Path,
    io: &Io<'_>,
) -> std::io::Result<tempfile::NamedTempFile> {
    use std::io::Write as _;
    let home = || Some(PathBuf::from((io.variable)("HOME")?).join(".wgetrc"));
    let own = (io.variable)("WGETRC").map(PathBuf::from).or_else(home);
    let mut settings = match own.map(std::fs::read) {
        Some(Ok(settings)) => settings,
        // wget itself ignores a missing file.
        Some(Err(_)) | None => Vec::new(),
    };
    settings.extend(format!("\nca_certificate = {}\n", authorities.display()).bytes());
    let mut file = tempfile::Builder::new()
        .prefix("petstore-mock-")
        .suffix(".wgetrc")
        .tempfile()?;
    file.write_all(&settings)?;
    command.env("WGETRC", file.path());
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_keys_are_the_same() {
        let key = fresh_key();
        assert_eq!(key.len(), 37);
        assert_ne!(key, fresh_key());
    }
}
