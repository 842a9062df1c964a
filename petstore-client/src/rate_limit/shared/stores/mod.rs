//! The stores that come with the crate, and a store of any type.

pub(crate) mod boxed;
#[cfg(feature = "file-store")]
pub(crate) mod file;
#[cfg(feature = "file-store")]
mod folder;
#[cfg(feature = "redis")]
pub(crate) mod redis;
