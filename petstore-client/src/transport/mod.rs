//! Sends requests: TLS, proxies and custom transports.
//!
//! The built-in transport is an HTTP client with a connection pool. To use another HTTP client, or
//! a fake in tests, implement [`Transport`].

mod custom;
mod network;
mod settings;

pub(crate) use custom::DynTransport;
pub use custom::{ResponseLimit, Transport, TransportError, TransportFn, transport_fn};
pub(crate) use network::{AttemptLimits, Network, Route, read};
pub(crate) use settings::Connection;
pub use settings::{Proxy, Tls, TlsBackend};
