//! The signals that ask the process to stop, and forwarding them.

use std::io;

/// A request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Interrupt,
    #[cfg(unix)]
    Terminate,
}

/// SIGINT and SIGTERM, caught from the moment this is made, whether or not it is waited for yet; where
/// there are no such signals, Ctrl-C.
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

    /// Waits for the next of them.
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

    /// Waits until it is pressed.
    pub(super) async fn next(&mut self) -> Signal {
        // Where it can't be caught, it ends the process by itself.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}

/// Passes a signal on to another process, unless its terminal has sent it that one already.
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
        // If it has ended meanwhile, that is what was wanted.
        let _ = kill_process(pid, number);
    }
}

/// Whether a Ctrl-C at the terminal reaches this process, and so whatever it runs.
#[cfg(unix)]
fn has_terminal() -> bool {
    use rustix::{process::getpgrp, stdio::stdin, termios::tcgetpgrp};
    tcgetpgrp(stdin()).is_ok_and(|foreground| foreground == getpgrp())
}

/// The console sends Ctrl-C to all of its processes.
#[cfg(not(unix))]
pub(super) fn forward(_: Signal, _: u32) {}
