//! The server: listener, connections with faults, and TLS. `http` creates the responses.

mod builder;
mod connection;
mod io;
mod listener;
mod mock_server;
mod reply;
mod state;
#[cfg(feature = "tls")]
mod tls;

pub use self::{
    builder::{Builder, StartError},
    mock_server::MockServer,
};
