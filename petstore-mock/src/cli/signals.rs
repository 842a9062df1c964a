//! Receives and forwards the signals that stop the process.

use std::io;

#[cfg(unix)]
use rustix::process::Signal;

/// Ctrl-C.
#[cfg(not(unix))]
pub(super) struct Signal;

/// Receives SIGINT and SIGTERM, or on Windows Ctrl-C, from the creation of this value on.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for Ctrl-C.
    pub(super) async fn next(&mut self) -> Signal {
        // If Ctrl-C cannot be handled, it ends the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal
    }
}

/// Sends a signal to another process, unless its terminal has already sent it.
#[cfg(unix)]
pub(super) fn forward(signal: Signal, to: u32) {
    use rustix::process::{Pid, kill_process};
    let pid = i32::try_from(to).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid.filter(|_| signal != Signal::INT || !has_terminal()) {
        // This fails if the process has already ended, which is fine.
        let _ = kill_process(pid, signal);
    }
}

/// Whether a Ctrl-C at the terminal reaches this process and its children.
#[cfg(unix)]
fn has_terminal() -> bool {
    use rustix::{process::getpgrp, termios::tcgetpgrp};
    // stdin may be redirected, so the terminal is opened by its name. That fails if there is no
    // terminal.
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|it| tcgetpgrp(it).is_ok_and(|foreground| foreground == getpgrp()))
}

/// Does nothing: the console itself sends Ctrl-C to all its processes.
#[cfg(not(unix))]
pub(super) fn forward(_: Signal, _: u32) {}
