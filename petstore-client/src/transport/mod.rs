//! Sends requests: TLS, proxies and custom transports.
//!
//! The built-in transport is an HTTP client with a connection pool. To use another HTTP client, or
//! a fake in tests, implement [`Transport`]. To record, cache, sign or route requests, wrap [`Builtin`].

mod builtin;
mod cause;
mod custom;
mod mark;
mod network;
mod settings;

pub use builtin::Builtin;
pub use custom::{
    BoxTransport, ResponseLimit, Transport, TransportError, TransportFn, transport_fn,
};
pub use mark::SendMark;
pub(crate) use network::{AttemptLimits, Network, Route, read};
pub use settings::{Connection, Proxy, Tls, TlsBackend};
