//! HTTP: addresses, headers, TLS, and one attempt to send a request.

pub(crate) mod base_url;
pub(crate) mod headers;
pub(crate) mod tls;
pub(crate) mod transport;
