//! What stands for TLS where the feature `tls` is off: there is none.

use std::io;

use tokio::net::TcpStream;

/// An identity that can't be.
#[derive(Clone, Debug)]
pub(crate) enum Tls {}

impl Tls {
    #[expect(clippy::unused_async, reason = "as it is where there is TLS")]
    pub(crate) async fn accept(&self, _: TcpStream) -> io::Result<TcpStream> {
        match *self {}
    }
}
