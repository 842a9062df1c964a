//! What is checked before a call starts: its options, its URL and its runtime.

use std::cell::Cell;
use std::net::{Ipv4Addr, UdpSocket};
use std::panic::catch_unwind;
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::time::sleep;

use crate::client::Client;
use crate::error::Error;
use crate::request::Request;
use crate::wire::base_url::same_origin;

/// Checks the request before anything is sent. Returns the current runtime.
pub(super) fn check(client: &Client, request: &Request) -> Result<Handle, Error> {
    if client.options.max_attempts == Some(0) {
        return Err(Error::invalid(
            "the number of attempts cannot be used: it must be at least 1",
        ));
    }
    // The last check before the key is sent: the request must go to the base URL's origin.
    if !same_origin(&request.url, client.base_url()) {
        return Err(Error::invalid("its URL is not on the base URL's origin"));
    }
    let Ok(runtime) = Handle::try_current() else {
        return Err(Error::cannot_run("there is no Tokio runtime"));
    };
    let drivers = Drivers::of(runtime.id());
    if !drivers.has_time {
        return Err(without("timers", "enable_time"));
    }
    if !drivers.has_io && client.core.network.needs_io() {
        return Err(without("I/O", "enable_io"));
    }
    Ok(runtime)
}

fn without(driver: &str, method: &str) -> Error {
    Error::cannot_run(format!(
        "its Tokio runtime has no {driver}; build the runtime with `enable_all` or `{method}`"
    ))
}

/// The drivers that a runtime was built with. Using a missing one panics, and tokio has no other way to
/// ask.
#[derive(Clone, Copy)]
struct Drivers {
    has_time: bool,
    has_io: bool,
}

impl Drivers {
    /// Returns the drivers of the current runtime. If one is missing, tokio's panic message appears on
    /// stderr, usually once for each thread.
    fn of(runtime: runtime::Id) -> Self {
        thread_local! {
            static LAST: Cell<Option<(runtime::Id, Drivers)>> = const { Cell::new(None) };
        }
        match LAST.get() {
            Some((id, drivers)) if id == runtime => drivers,
            _ => {
                let drivers = Self {
                    has_time: catch_unwind(|| drop(sleep(Duration::ZERO))).is_ok(),
                    has_io: catch_unwind(register_a_socket).is_ok(),
                };
                LAST.set(Some((runtime, drivers)));
                drivers
            }
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
