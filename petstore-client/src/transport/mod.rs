//! How requests travel: TLS, proxies, and transports of a program's own.
//!
//! The built-in transport is an HTTP client with a connection pool. A program that brings its own, or
//! none at all in its tests, implements [`Transport`]: the client adds all the rest, from the key to
//! the retries.

mod custom;
mod network;
mod settings;

pub(crate) use custom::DynTransport;
pub use custom::{ResponseLimit, Transport, TransportError, TransportFn, transport_fn};
pub(crate) use network::{AttemptLimits, HttpRequest, Network, read};
pub(crate) use settings::Connection;
pub use settings::{Proxy, Tls, TlsBackend};
