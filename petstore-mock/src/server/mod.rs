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
mod throttle;
#[cfg(feature = "tls")]
mod tls;

/// What stands for TLS where the feature `tls` is off: nothing that could be made.
#[cfg(not(feature = "tls"))]
mod tls {
    pub(super) type Tls = std::convert::Infallible;
}

#[cfg(all(feature = "tls", feature = "cli"))]
pub(crate) use self::tls::connect_tls;
pub use self::{
    builder::{Builder, StartError},
    limits::Limits,
    mock_server::MockServer,
};
