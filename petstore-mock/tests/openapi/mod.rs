//! Checks responses against the mock's OpenAPI documents: status, headers and body.

pub(crate) mod document;
mod watched;

use http::HeaderMap;

pub(crate) use self::watched::Watched;
use document::{ADMINISTRATION, SERVICE};

/// A response to check against a document.
#[derive(Clone, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) method: &'a str,
    /// The path without the query.
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body; `None` if it is not completely known.
    pub(crate) body: Option<&'a [u8]>,
}

/// Returns how a response violates its document.
pub(crate) fn offence(answer: &Answer<'_>) -> Option<String> {
    // Unknown paths are in no document, but their errors must still have the documented shape.
    let is_admin = answer.path.starts_with("/_mock/");
    let document = if is_admin { &ADMINISTRATION } else { &SERVICE };
    let found = document.check(answer).err()?;
    Some(format!(
        "{} {} {}: {found}",
        answer.method, answer.path, answer.status
    ))
}
