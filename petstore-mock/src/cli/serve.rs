//! `serve`: binds, prints the URL, serves, and stops on a signal.

use std::{ffi::OsString, fs, io, path::Path};

use super::{
    client::{DEFAULT_PORT, admin_token},
    flags::ServeArgs,
    gate::{Origin, Written},
    greeting::{greeting, ready_line},
    outcome::{CliError, Io},
    request_log::RequestLog,
    signals::Signals,
};
use crate::{
    fault::Fault,
    routes::Route,
    server::{Builder, MockServer},
    state::Seed,
    text::read_json,
};

/// Serves until a signal. A second signal ends the wait for requests in flight.
pub(super) async fn run(args: &ServeArgs, io: &mut Io<'_>) -> Result<u8, CliError> {
    // Signals are handled before the ready line is printed. After that line, a signal must stop the
    // server gracefully.
    let mut signals = Signals::listen()?;
    args.gate.check()?;
    let builder = args
        .builder()?
        .port(args.server.port().unwrap_or(DEFAULT_PORT));
    let server = start(args, builder, io).await?;
    let journal = server.journal();
    serve(args, server, &mut signals, io).await;
    args.gate
        .finish(&Written::from(&journal.report()), Origin::Serve, io)
}

/// Says that the server is ready, logs requests, and stops it gracefully after a signal.
pub(super) async fn serve(
    args: &ServeArgs,
    server: MockServer,
    signals: &mut Signals,
    io: &mut Io<'_>,
) {
    let text = match io.is_terminal {
        true => greeting(&server, args.server.ca_file()),
        false => ready_line(&server),
    };
    // The server works even if the stream is closed.
    let _ = io
        .out
        .write_all(text.as_bytes())
        .and_then(|()| io.out.flush());
    let mut log = RequestLog::new(server.journal(), io);
    loop {
        tokio::select! {
            _ = signals.next() => break,
            () = log.changed() => log.print(io),
        }
    }
    tokio::select! {
        () = server.stop() => {}
        _ = signals.next() => {}
    }
    log.print(io);
}

/// Starts a server with the files that the flags name, and writes the port and certificate files.
pub(super) async fn start(
    args: &ServeArgs,
    mut builder: Builder,
    io: &Io<'_>,
) -> Result<MockServer, CliError> {
    let ServeArgs {
        server: flags,
        service,
        ..
    } = args;
    let token = admin_token(flags.admin_token_file.as_deref(), io)?;
    if let Some(token) = token {
        builder = builder.admin_token(token);
    }
    if let Some(given) = &service.faults {
        for fault in read_faults(given)? {
            builder = builder.fault(fault);
        }
    }
    if let Some(path) = &service.routes {
        builder = builder.routes(read_routes(path)?);
    }
    if let Some(path) = &service.seed {
        builder = builder.seed(read_seed(path)?);
    }
    let server = builder.start().await?;
    if let Some(path) = &flags.port_file {
        write_whole(path, &format!("{}\n", server.addr().port()))
            .map_err(|error| CliError::file("write the port file", path, &error))?;
    }
    #[cfg(feature = "tls")]
    if let (Some(path), Some(authority)) = (&flags.tls_ca_file, server.ca_certificate()) {
        write_whole(path, authority)
            .map_err(|error| CliError::file("write the CA certificate", path, &error))?;
    }
    Ok(server)
}

fn read_seed(path: &Path) -> Result<Seed, CliError> {
    if path.as_os_str() == "none" {
        return Ok(Seed::none());
    }
    let text = fs::read(path).map_err(|error| CliError::file("read the seed", path, &error))?;
    Seed::from_json(&text).map_err(|error| CliError::new(format!("{}: {error}", path.display())))
}

fn read_routes(path: &Path) -> Result<Vec<Route>, CliError> {
    let text = fs::read(path).map_err(|error| CliError::file("read the routes", path, &error))?;
    Route::all_from_json(&text).map_err(|error| {
        let example = r#"[{"method": "PUT", "path": "/pets/{petId}", "json": {}}]"#;
        let path = path.display();
        CliError::new(format!(
            "{path}: {error}; give an array of routes, such as {example}"
        ))
    })
}

/// Reads faults: JSON, or a file with it.
fn read_faults(given: &str) -> Result<Vec<Fault>, CliError> {
    let (place, text) = if given.trim_ascii_start().starts_with(['[', '{']) {
        ("--faults", given.to_owned())
    } else {
        let text = fs::read_to_string(given);
        let path = Path::new(given);
        (
            given,
            text.map_err(|error| CliError::file("read the faults", path, &error))?,
        )
    };
    read_json(text.as_bytes()).map_err(|error| {
        let example = r#"[{"effect": {"status": 503}}]"#;
        CliError::new(format!(
            "{place}: {error}; give an array of faults, such as {example}"
        ))
    })
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
