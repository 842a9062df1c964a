//! What happens when it runs: parse, bind, tell, serve, stop.

use std::{ffi::OsString, fs, io::Write};

use clap::Parser;
use tokio::sync::Notify;

use super::{ServeArgs, ServeError, args::Typed, port_file, signals::Signals};
use crate::seed::Seed;

/// Runs the whole command, `args[0]` being its name, and returns its exit status: 0 when it was
/// stopped by a signal or showed its help, 1 when it could not serve, 2 when it was typed wrong.
///
/// It makes a tokio runtime of its own, so it must not be called from within one.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let typed = match Typed::try_parse_from(args) {
        Ok(typed) => typed,
        Err(error) => {
            let to: &mut dyn Write = if error.use_stderr() { err } else { out };
            // Nobody is left to tell where the streams are closed.
            let _ = write!(to, "{}", error.render());
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    match serve_until_signal(&typed.into_serve(), out) {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(err, "petstore-mock: {error}");
            error.exit_status()
        }
    }
}

fn serve_until_signal(args: &ServeArgs, out: &mut dyn Write) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before the ready line: from then on a signal must find the server listening to it.
        let mut signals = Signals::listen()?;
        let stop = Notify::new();
        let twice = async {
            signals.next().await;
            stop.notify_one();
            signals.next().await;
        };
        tokio::select! {
            served = serve(args, out, stop.notified()) => served,
            // Who asks again does not want to wait for requests at hand.
            () = twice => Ok(()),
        }
    })
}

/// Serves until `stop` ends, on the tokio runtime this is awaited on.
///
/// Once the port is bound, the port file is written, and then one line to `out`:
/// `listening on http://127.0.0.1:4010/v1`.
///
/// # Errors
///
/// Where a key or the seed is wrong, the address can't be bound, or the port file can't be written.
pub async fn serve(
    args: &ServeArgs,
    out: &mut dyn Write,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let server = args.builder()?.seed(seed(args)?).start().await.map_err(ServeError::Start)?;
    if let Some(path) = &args.port_file {
        port_file::write(path, server.addr().port())
            .map_err(|source| ServeError::PortFile { path: path.clone(), source })?;
    }
    // Who closed the stream does not want to know; the server is there all the same.
    let _ = writeln!(out, "listening on http://{}/v1", server.addr()).and_then(|()| out.flush());
    stop.await;
    server.stop().await;
    Ok(())
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
        Err(source) => Err(ServeError::ReadSeed { path, source }),
    }
}
