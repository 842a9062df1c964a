//! URLs and headers.

pub(crate) mod base_url;
pub(crate) mod headers;
