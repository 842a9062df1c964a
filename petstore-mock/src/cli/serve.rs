//! `serve`: binds, prints the URL, serves, and stops on a signal.

use std::{
    ffi::OsString,
    fs,
    io::{self, IsTerminal as _},
    path::Path,
};

use super::{
    client::{DEFAULT_PORT, admin_token},
    flags::ServeArgs,
    outcome::{CliError, print, say},
    request_log::RequestLog,
    signals::Signals,
};
use crate::{
    fault::Faults,
    handle::Key,
    server::{Builder, MockServer},
    state::DEFAULT_KEYS,
};

/// Serves until a signal. A second signal ends the wait for requests in flight.
pub(super) async fn run(args: &ServeArgs) -> Result<u8, CliError> {
    // Signals are handled before the ready line is printed. After that line, a signal must stop the
    // server gracefully.
    let mut signals = Signals::listen()?;
    let server = start(args, args.builder(DEFAULT_PORT)?).await?;
    let (journal, faults) = (server.journal(), server.faults().clone());
    let text = match io::stdout().is_terminal() {
        true => greeting(&server, args.tls_ca_file.as_deref()),
        false => ready_line(&server),
    };
    // The server works even if the line cannot be printed.
    let _ = print(&text);
    let mut log = RequestLog::new(server.journal(), args.verbose);
    loop {
        tokio::select! {
            _ = signals.next() => break,
            () = log.changed() => log.print(),
        }
    }
    tokio::select! {
        () = server.stop() => {}
        _ = signals.next() => {}
    }
    log.print();
    tell_of_unused(&faults);
    let report = journal.report();
    args.gate.print(&report);
    args.gate
        .judge(&report, "check the base URL and the key of the client")
}

/// Starts a server, and writes the port and certificate files.
pub(super) async fn start(args: &ServeArgs, mut builder: Builder) -> Result<MockServer, CliError> {
    if let Some(token) = admin_token(args.admin_token_file.as_deref())? {
        builder = builder.admin_token(token);
    }
    let server = builder.start().await?;
    if let Some(path) = &args.port_file {
        write_whole(path, &format!("{}\n", server.addr().port()))
            .map_err(|error| CliError::file("write the port file", path, &error))?;
    }
    if let (Some(path), Some(authority)) = (&args.tls_ca_file, server.ca_certificate()) {
        write_whole(path, authority)
            .map_err(|error| CliError::file("write the CA certificate", path, &error))?;
    }
    Ok(server)
}

/// Tells which faults have hit no request: a test that counts on them shows nothing.
pub(super) fn tell_of_unused(faults: &Faults) {
    for status in faults.list() {
        if status.hits == 0 {
            let fault = status.fault;
            say(format_args!(
                "petstore-mock: the fault `{fault}` has hit no request since it was set"
            ));
        }
    }
}

/// Writes a file atomically, so that a process that waits for it can read it immediately.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    // The new file is in the same folder, because a rename is atomic only within a file system.
    let mut beside = OsString::from(path);
    beside.push(format!(".{}.tmp", std::process::id()));
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The new file may not exist. In any case, the first error is the one to report.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Returns the only line that is written to a pipe. It has the address that the server listens on.
fn ready_line(server: &MockServer) -> String {
    let scheme = server.origin().split(':').next().unwrap_or_default();
    format!("listening on {scheme}://{}/v1\n", server.addr())
}

/// Returns at most six lines for a person: where the mock serves, its keys, and what to try.
fn greeting(server: &MockServer, authority: Option<&Path>) -> String {
    let (url, origin) = (server.url(), server.origin());
    let keys = server.keys().all();
    let trust = match authority {
        Some(path) => format!("--cacert '{}' ", path.display()),
        None if origin.starts_with("https:") => "--insecure ".to_owned(),
        None => String::new(),
    };
    // Only a public key is shown as its own name.
    let usages = keys.iter().filter_map(Key::usage);
    let shown = usages.map(|usage| format!("{} ({})", usage.label.name(), usage.plan));
    let shown: Vec<_> = shown.collect();
    let is_default = |key: &&Key| DEFAULT_KEYS.iter().any(|(known, _)| **known == ***key);
    let key = match keys.iter().find(is_default) {
        Some(key) => key.as_str(),
        None => "$PETSTORE_API_KEY",
    };
    format!(
        "{ready}  keys: {keys}\n  inspector: {origin}/_mock\n  \
         try: curl {trust}-H \"Authorization: Bearer {key}\" \"{url}/pets?limit=2\"\n  \
         -v logs each request; Ctrl-C stops the mock and prints what its report found\n",
        ready = ready_line(server),
        keys = shown.join(", "),
    )
}
