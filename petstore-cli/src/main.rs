//! The process: passes arguments, variables, streams and signals to the library.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::stream;
use petstore_cli::{Dirs, Env, Prompt, Signal, Stream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// A program that has not handled a signal within this time is blocked in a read or write.
const SIGNAL_TIMEOUT: Duration = Duration::from_millis(500);

/// The terminal's modes before a prompt switched the echo off.
#[cfg(unix)]
static TERMINAL_MODES: std::sync::OnceLock<rustix::termios::Termios> = std::sync::OnceLock::new();

#[expect(
    clippy::disallowed_methods,
    reason = "the entry point reads the process environment"
)]
fn main() -> ExitCode {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "error: could not start: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
    let stdin = std::io::stdin();
    let stdout = std::io::stdout();
    let stderr = std::io::stderr();
    let vars = std::env::vars_os().filter_map(text).collect();
    let env = Env {
        args: std::env::args_os().collect(),
        dirs: Dirs::from_vars(&vars),
        vars,
        prompt: stdin
            .is_terminal()
            .then(|| Box::new(ask_for_secret) as Prompt),
        stdin_is_terminal: stdin.is_terminal(),
        stdin: Box::new(stdin),
        stdout: Stream {
            is_terminal: stdout.is_terminal(),
            writer: Box::new(stdout),
        },
        stderr: Stream {
            is_terminal: stderr.is_terminal(),
            writer: Box::new(stderr),
        },
        now: std::time::SystemTime::now,
        width: terminal_size::terminal_size().map(|(width, _)| width.0),
        signals: Box::pin(stream::unfold(watch_signals(), |mut signals| async {
            Some((signals.recv().await?, signals))
        })),
    };
    let code = runtime.block_on(petstore_cli::run(env));
    // A hanging name look-up must not keep the process alive.
    runtime.shutdown_background();
    restore_terminal();
    ExitCode::from(code)
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn ask_for_secret(question: &str) -> std::io::Result<String> {
    #[cfg(unix)]
    if let Ok(modes) = rustix::termios::tcgetattr(std::io::stdin()) {
        let _ = TERMINAL_MODES.set(modes);
    }
    rpassword::prompt_password(question)
}

/// Restores the terminal, in case a signal interrupted a prompt.
fn restore_terminal() {
    #[cfg(unix)]
    if let Some(modes) = TERMINAL_MODES.get() {
        use rustix::termios::{OptionalActions, tcsetattr};

        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, modes);
    }
}

/// Receives signals on another thread, and ends the process if the program does not handle them,
/// for example because a full pipe blocks it.
fn watch_signals() -> mpsc::Receiver<Signal> {
    let (sender, receiver) = mpsc::channel(2);
    let (registering, registered) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let Ok(runtime) = runtime() else { return };
        let _ = runtime.block_on(forward_signals(&sender, registering));
    });
    // Wait until signals are received: an earlier one would end the process without a message.
    let _ = registered.recv();
    receiver
}

/// Passes signals on. Drops `registering` once signals are received.
#[cfg(unix)]
async fn forward_signals(
    sender: &mpsc::Sender<Signal>,
    registering: std::sync::mpsc::Sender<()>,
) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let ignores_hangups = ignores_hangups();
    let mut hangups = signal(SignalKind::hangup())?;
    drop(registering);
    loop {
        tokio::select! {
            _ = interrupts.recv() => forward(sender, Signal::Interrupt),
            _ = terminations.recv() => forward(sender, Signal::Terminate),
            _ = hangups.recv(), if !ignores_hangups => forward(sender, Signal::HangUp),
        }
    }
}

/// Returns whether SIGHUP is ignored, as under `nohup`. Where the system does not say, it counts as
/// ignored without a terminal.
#[cfg(unix)]
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    match ignored.map(|mask| u64::from_str_radix(mask.trim(), 16)) {
        Some(Ok(mask)) => mask & 1 == 1,
        _ => !std::io::stderr().is_terminal(),
    }
}

#[cfg(windows)]
async fn forward_signals(
    sender: &mpsc::Sender<Signal>,
    registering: std::sync::mpsc::Sender<()>,
) -> std::io::Result<()> {
    let mut interrupts = tokio::signal::windows::ctrl_c()?;
    drop(registering);
    loop {
        interrupts.recv().await;
        forward(sender, Signal::Interrupt);
    }
}

fn forward(sender: &mpsc::Sender<Signal>, signal: Signal) {
    let _ = sender.try_send(signal);
    let sender = sender.clone();
    tokio::spawn(async move {
        tokio::time::sleep(SIGNAL_TIMEOUT).await;
        if sender.capacity() < sender.max_capacity() {
            end(signal);
        }
    });
}

#[expect(clippy::exit, reason = "the main thread is blocked, and cannot return")]
fn end(signal: Signal) {
    let _ = writeln!(std::io::stderr(), "error: {signal}");
    restore_terminal();
    std::process::exit(signal.code().into());
}
