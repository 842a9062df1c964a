//! The server: accepting connections, with TLS where it is asked for, speaking HTTP on each, holding them
//! to the limits, and ending them. What a request is answered is up to `http`.

mod builder;
mod connection;
mod io;
mod limits;
mod listener;
mod mock_server;
mod socket_faults;
mod state;
mod thread;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;

pub use self::{
    builder::{Builder, StartError},
    limits::Limits,
    mock_server::MockServer,
};
