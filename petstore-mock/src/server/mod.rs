//! The server: listener, connections with limits and faults, and TLS. `http` creates the responses.

mod builder;
mod connection;
mod io;
mod listener;
mod mock_server;
mod socket_faults;
mod state;
#[cfg(feature = "tls")]
mod tls;

/// The replacement without the feature `tls`.
#[cfg(not(feature = "tls"))]
mod tls {
    use super::state::Transport;

    pub(super) use self::NoTls as Tls;

    #[derive(Clone)]
    pub(super) enum NoTls {}

    impl NoTls {
        #[expect(clippy::unused_async, reason = "async with the feature")]
        pub(super) async fn accept(
            &self,
            _: tokio::net::TcpStream,
        ) -> Option<Result<Box<dyn Transport>, Box<dyn Transport>>> {
            match *self {}
        }
    }
}

#[cfg(all(feature = "tls", feature = "cli"))]
pub(crate) use self::tls::connect_tls;
pub use self::{
    builder::{Builder, StartError},
    mock_server::MockServer,
    state::Limits,
};
