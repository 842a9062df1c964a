//! The process: gathers arguments, variables, streams and signals, and hands them to the library.

mod terminal;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::stream;
use petstore_cli::{Dirs, Env, Signal, Stream};
use tokio::sync::mpsc;

use crate::terminal::Terminal;

/// A signal that the program does not take within this time finds it blocked in a read or a write.
const SIGNAL_TIMEOUT: Duration = Duration::from_millis(500);

#[expect(clippy::disallowed_methods, reason = "the edge where the process is met")]
fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "error: could not start: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let vars = std::env::vars_os().filter_map(text).collect();
    let terminal = Terminal::default();
    let env = Env {
        args: std::env::args_os().collect(),
        dirs: Dirs::from_vars(&vars),
        vars,
        prompt: terminal.prompt(),
        stdin_is_terminal: stdin.is_terminal(),
        stdin: Box::new(stdin),
        stdout: Stream { is_terminal: stdout.is_terminal(), writer: Box::new(stdout) },
        stderr: Stream { is_terminal: stderr.is_terminal(), writer: Box::new(stderr) },
        now: std::time::SystemTime::now,
        width: terminal_size::terminal_size().map(|(width, _)| width.0),
        signals: Box::pin(stream::unfold(watch_signals(terminal.clone()), |mut signals| async {
            Some((signals.recv().await?, signals))
        })),
    };
    let code = runtime.block_on(petstore_cli::run(env));
    // A name look-up that still hangs must not keep the process.
    runtime.shutdown_background();
    terminal.restore();
    ExitCode::from(code)
}

/// Listens for signals on another thread, and ends the process where the program does not take
/// them: it is blocked then, such as by a full pipe.
fn watch_signals(terminal: Terminal) -> mpsc::Receiver<Signal> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            while let Some(signal) = next_signal().await {
                let _ = sender.try_send(signal);
                tokio::time::sleep(SIGNAL_TIMEOUT).await;
                if sender.capacity() == 0 {
                    end(&terminal, signal);
                }
            }
        });
    });
    receiver
}

#[expect(clippy::exit, reason = "the main thread is blocked, and cannot return")]
fn end(terminal: &Terminal, signal: Signal) {
    let word = match signal {
        Signal::Interrupt => "interrupted",
        Signal::Terminate => "terminated",
    };
    let _ = writeln!(std::io::stderr(), "error: {word}");
    terminal.restore();
    std::process::exit(signal.code().into());
}

#[cfg(unix)]
async fn next_signal() -> Option<Signal> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupts = signal(SignalKind::interrupt()).ok()?;
    let mut terminations = signal(SignalKind::terminate()).ok()?;
    tokio::select! {
        _ = interrupts.recv() => Some(Signal::Interrupt),
        _ = terminations.recv() => Some(Signal::Terminate),
    }
}

#[cfg(not(unix))]
async fn next_signal() -> Option<Signal> {
    tokio::signal::ctrl_c().await.ok()?;
    Some(Signal::Interrupt)
}
