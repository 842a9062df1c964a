//! What logs and spans have in common.

/// The target of all spans and log records.
pub(crate) const TARGET: &str = "petstore_client";
