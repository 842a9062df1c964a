//! Finds out which drivers (timers, I/O) a runtime was built with. Using a missing one panics, and
//! tokio has no other way to ask.

use std::net::{Ipv4Addr, UdpSocket};
use std::panic::catch_unwind;
use std::time::Duration;

use crate::error::Error;

/// The drivers of a runtime.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drivers {
    has_time: bool,
    has_io: bool,
}

impl Drivers {
    /// Returns the drivers of the current runtime. If one is missing, tokio's panic message appears
    /// on stderr, once for each runtime.
    pub(super) fn of_this_runtime() -> Self {
        Self {
            has_time: catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok(),
            has_io: catch_unwind(register_a_socket).is_ok(),
        }
    }

    /// Fails if a driver is missing that a call needs.
    pub(super) fn check(self, needs_io: bool) -> Result<(), Error> {
        match self {
            Self {
                has_time: false, ..
            } => Err(without("timers", "enable_time")),
            Self { has_io: false, .. } if needs_io => Err(without("I/O", "enable_io")),
            _ => Ok(()),
        }
    }
}

/// Registers a socket with the runtime. Panics if the runtime has no driver for I/O. Does nothing
/// if the system allows no socket: then the call itself will fail and say so.
fn register_a_socket() {
    let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) else {
        return;
    };
    if socket.set_nonblocking(true).is_ok() {
        drop(tokio::net::UdpSocket::from_std(socket));
    }
}

fn without(driver: &str, method: &str) -> Error {
    Error::cannot_run(format!(
        "its Tokio runtime has no {driver}; build the runtime with `enable_all` or `{method}`"
    ))
}
