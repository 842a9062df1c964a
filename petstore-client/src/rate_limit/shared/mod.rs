//! How processes share the quotas of a key: each is a member that updates a small record in a store.

pub(crate) mod slot;

pub(crate) mod division;
pub(crate) mod member;

pub(crate) mod store;

pub(crate) mod exchange;
#[cfg(feature = "file-store")]
pub(crate) mod file;
#[cfg(feature = "redis")]
pub(crate) mod redis;
