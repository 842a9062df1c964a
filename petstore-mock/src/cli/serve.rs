//! `serve`: bind, tell, serve, stop.

use std::fs;

use tokio::sync::Notify;

use super::{Io, ServeArgs, ServeError, signals::Signals, whole_file};
use crate::{fault::Fault, server::Builder, server::MockServer, state::Seed};

/// Where the mock listens unless it is told.
const PORT: u16 = 4010;

/// Serves until a signal; a second one ends the wait for requests at hand.
pub(super) async fn run(args: &ServeArgs, io: &mut Io<'_>) -> Result<u8, ServeError> {
    // Before the ready line: from then on a signal must find the server listening to it.
    let mut signals = Signals::listen()?;
    args.report.format()?;
    let server = start(args, args.builder()?.port(args.port.unwrap_or(PORT)), io).await?;
    // Who closed the stream does not want to know; the server is there all the same.
    let _ = writeln!(io.out, "listening on {}", server.url()).and_then(|()| io.out.flush());
    let journal = server.journal();
    let stop = Notify::new();
    let signalled = async {
        signals.next().await;
        stop.notify_one();
        signals.next().await;
    };
    let stopped = async {
        stop.notified().await;
        server.stop().await;
    };
    tokio::select! {
        () = stopped => {}
        () = signalled => {}
    }
    args.report.finish(&journal.report(), io)
}

/// Starts what the flags describe, and writes the files that tell of it.
pub(super) async fn start(
    args: &ServeArgs,
    mut builder: Builder,
    io: &Io<'_>,
) -> Result<MockServer, ServeError> {
    if let Some(token) = admin_token(args, io)? {
        builder = builder.admin_token(token);
    }
    for fault in faults(args)? {
        builder = builder.fault(fault);
    }
    let server = builder.seed(seed(args)?).start().await.map_err(ServeError::Start)?;
    if let Some(path) = &args.port_file {
        whole_file::write(path, &format!("{}\n", server.addr().port()))
            .map_err(|source| ServeError::file("write the port file", path, source))?;
    }
    #[cfg(feature = "tls")]
    if let (Some(path), Some(authority)) = (&args.tls_ca_file, server.ca_certificate()) {
        whole_file::write(path, authority)
            .map_err(|source| ServeError::file("write the CA certificate", path, source))?;
    }
    Ok(server)
}

fn seed(args: &ServeArgs) -> Result<Seed, ServeError> {
    let Some(path) = &args.seed else {
        return Ok(Seed::default());
    };
    if path.as_os_str() == "none" {
        return Ok(Seed::none());
    }
    let path = path.clone();
    match fs::read(&path) {
        Ok(text) => Seed::from_json(&text).map_err(|source| ServeError::Seed { path, source }),
        Err(source) => Err(ServeError::file("read the seed", &path, source)),
    }
}

/// Reads the faults of a file.
fn faults(args: &ServeArgs) -> Result<Vec<Fault>, ServeError> {
    let Some(path) = &args.faults else { return Ok(Vec::new()) };
    let text =
        fs::read(path).map_err(|source| ServeError::file("read the faults", path, source))?;
    let mut deserializer = serde_json::Deserializer::from_slice(&text);
    let faults: Vec<Fault> = serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| ServeError::Faults { path: path.clone(), message: error.to_string() })?;
    deserializer
        .end()
        .map_err(|error| ServeError::Faults { path: path.clone(), message: error.to_string() })?;
    Ok(faults)
}

fn admin_token(args: &ServeArgs, io: &Io<'_>) -> Result<Option<String>, ServeError> {
    let Some(path) = &args.admin_token_file else {
        return Ok(io.admin_token.clone());
    };
    let text = fs::read_to_string(path)
        .map_err(|source| ServeError::file("read the admin token", path, source))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}
