//! URLs and headers, and what of them may be shown.

pub(crate) mod base_url;
pub(crate) mod extra_headers;
pub(crate) mod headers;
pub(crate) mod redact;
