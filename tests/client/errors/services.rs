//! Services that accept, refuse or lose requests.

#![cfg(target_os = "linux")]

use std::any::Any;

use petstore_client::transport::Proxy;
use petstore_mock::MockServer;
use tokio::io::AsyncWriteExt as _;

use super::not_sent::{base, full};
use crate::client::wire::{Act, Wire, listen};

/// The server at the base URL.
pub(super) enum Service {
    /// No server.
    Gone,
    /// A name that no resolver knows.
    Unknown,
    /// A server that accepts no connection.
    Full,
    /// A server without TLS, called with TLS. It writes these bytes, and closes the connection.
    WithoutTls(&'static [u8]),
    /// A server with a certificate that nobody trusts.
    Untrusted,
    /// A server that does this with each request.
    Acts(Act),
    /// A service behind a proxy that does this.
    Proxied(Act),
}

/// A running service, and what keeps it running.
pub(super) struct Running {
    pub(super) base: String,
    pub(super) proxy: Option<Proxy>,
    _service: Box<dyn Any>,
}

impl Running {
    fn new(base: impl Into<String>, service: impl Any) -> Self {
        Self {
            base: base.into(),
            proxy: None,
            _service: Box::new(service),
        }
    }
}

impl Service {
    /// Starts the service.
    pub(super) async fn start(&self) -> Running {
        match self {
            Self::Gone => Running::new(base(&listen()), ()),
            // A label of a host name has at most 63 characters, so this name is never looked up.
            Self::Unknown => Running::new(format!("http://{}.test:1/v1", "x".repeat(64)), ()),
            Self::Full => {
                let (listener, waiting) = full().await;
                Running::new(base(&listener), (listener, waiting))
            }
            Self::WithoutTls(bytes) => {
                let (listener, bytes) = (listen(), *bytes);
                let base = base(&listener).replace("http://", "https://");
                let serving = tokio::spawn(async move {
                    while let Ok((mut stream, _)) = listener.accept().await {
                        let _ = stream.write_all(bytes).await;
                    }
                });
                Running::new(base, serving)
            }
            Self::Untrusted => {
                let server = MockServer::builder().tls().start().await.unwrap();
                Running::new(server.url().to_owned(), server)
            }
            Self::Acts(act) => {
                let server = Wire::of(vec![act.clone()]);
                Running::new(server.base(), server)
            }
            Self::Proxied(act) => {
                let server = Wire::of(vec![act.clone()]);
                Running {
                    proxy: Some(Proxy::all(server.origin())),
                    ..Running::new("https://petstore.test/v1", server)
                }
            }
        }
    }
}
