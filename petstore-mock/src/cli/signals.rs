//! Receives and forwards the signals that stop the process.

use std::io;

/// A request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Interrupt,
    #[cfg(unix)]
    Terminate,
}

/// SIGINT and SIGTERM, received from the creation of this value; on Windows, Ctrl-C.
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
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
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
        // If it can't be handled, it ends the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}

/// Sends a signal to another process, unless its terminal has already sent it.
#[cfg(unix)]
pub(super) fn forward(signal: Signal, to: u32) {
    use rustix::process::{Pid, Signal as Number, kill_process};
    let number = match signal {
        Signal::Interrupt if has_terminal() => return,
        Signal::Interrupt => Number::INT,
        Signal::Terminate => Number::TERM,
    };
    let pid = i32::try_from(to).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Fails if the process has already ended, which is fine.
        let _ = kill_process(pid, number);
    }
}

/// Whether a Ctrl-C at the terminal reaches this process and its children.
#[cfg(unix)]
fn has_terminal() -> bool {
    use rustix::{process::getpgrp, stdio::stdin, termios::tcgetpgrp};
    tcgetpgrp(stdin()).is_ok_and(|foreground| foreground == getpgrp())
}

/// The console sends Ctrl-C to all its processes.
#[cfg(not(unix))]
pub(super) fn forward(_: Signal, _: u32) {}
