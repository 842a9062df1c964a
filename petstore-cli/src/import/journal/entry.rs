//! The lines of a journal.

use serde::{Deserialize, Serialize};

/// The first line: which import this is the journal of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Header {
    /// The version of this format.
    pub(crate) petstore_import: u32,
    /// The SHA-256 of the input, in hexadecimal digits.
    pub(crate) sha256: String,
    pub(crate) rows: usize,
    /// The service that the pets go to.
    pub(crate) base_url: String,
}

impl Header {
    pub(crate) const VERSION: u32 = 1;
}

/// Each line after it: what happened to a row, which is counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) row: usize,
    #[serde(flatten)]
    pub(super) event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Event {
    /// It is about to be sent.
    Sending,
    /// The service added it under this id.
    Created(i64),
    /// The service refused it, and says why.
    Rejected(String),
    /// It was sent, and whether it was added is not known.
    Unknown(String),
    /// It was not processed: it may be sent again.
    Unsent,
    /// Its fate was not known, and it is let be.
    Skipped,
}
