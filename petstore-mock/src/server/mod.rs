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

#[cfg(all(feature = "tls", feature = "cli"))]
pub(crate) use self::tls::connect_tls;
pub use self::{
    builder::{Builder, StartError},
    mock_server::MockServer,
};
