//! What stands for TLS where the feature `tls` is off.

use std::io;

use tokio::net::TcpStream;

/// An identity that can't be made.
#[derive(Clone, Debug)]
pub(super) enum Tls {}

impl Tls {
    #[expect(clippy::unused_async, reason = "as it is where there is TLS")]
    pub(super) async fn accept(&self, _: TcpStream) -> io::Result<TcpStream> {
        match *self {}
    }
}
