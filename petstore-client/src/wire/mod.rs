//! URLs and headers, and the removal of secrets from text that is shown.

pub(crate) mod base_url;
pub(crate) mod extra_headers;
pub(crate) mod headers;
pub(crate) mod redact;
