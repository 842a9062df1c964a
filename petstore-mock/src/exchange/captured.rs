//! The beginning of a body, and how long all of it was.

use bytes::Bytes;

/// What was seen of a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured {
    /// At most [`Captured::MOST`].
    pub(crate) start: Bytes,
    /// Of the whole body, as far as it was read.
    pub(crate) length: u64,
    /// The same for two request bodies of the same bytes; nothing unless it was read to its end.
    pub(crate) digest: Option<u64>,
}

impl Captured {
    /// How many bytes of a body are kept: 16 KiB.
    pub(crate) const MOST: usize = 16 * 1024;

    /// Returns the body of a request that has none.
    pub(crate) fn none() -> Self {
        Self { digest: Some(0), ..Self::default() }
    }

    /// Keeps a body that is there as a whole.
    pub(crate) fn whole(body: &Bytes) -> Self {
        let length = body.len() as u64;
        // A slice would keep all of a long body in memory.
        let start = match body.get(..Self::MOST) {
            Some(start) if body.len() > Self::MOST => Bytes::copy_from_slice(start),
            _ => body.clone(),
        };
        Self { start, length, digest: None }
    }
}
