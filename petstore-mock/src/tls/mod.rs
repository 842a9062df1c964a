//! HTTPS: who the server says it is, and by whom that is vouched for. When a handshake has to be over
//! is left to `accept`.

#[cfg(feature = "tls")]
mod identity;
#[cfg(not(feature = "tls"))]
mod off;

#[cfg(feature = "tls")]
pub(crate) use self::identity::{Encrypted, Tls};
#[cfg(not(feature = "tls"))]
pub(crate) use self::off::Tls;
