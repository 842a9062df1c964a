//! The body of a response, which records whether it was sent completely.

use std::sync::{Arc, atomic::Ordering};

use axum::body::Body as AxumBody;
use bytes::Bytes;

use super::Journal;
use crate::exchange::Record;

/// A response's body: bytes, or a stream of the administration. The rules judge the exchange when the
/// body is read or dropped.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) whole: Bytes,
    pub(crate) stream: Option<AxumBody>,
    /// The exchange, until it is judged.
    open: Option<(Arc<Journal>, Arc<Record>)>,
}

impl Observed {
    pub(super) fn new(whole: Bytes, journal: Arc<Journal>, record: Arc<Record>) -> Self {
        Self {
            whole,
            stream: None,
            open: Some((journal, record)),
        }
    }

    /// Lets the rules judge the exchange. Call it before the last bytes are sent, because the
    /// client may request the report as soon as it has them.
    pub(crate) fn judge(&mut self) {
        if let Some((journal, record)) = self.open.take() {
            journal.finished(&record, record.ended);
        }
    }
}

impl From<Bytes> for Observed {
    fn from(whole: Bytes) -> Self {
        Self {
            whole,
            stream: None,
            open: None,
        }
    }
}

impl From<AxumBody> for Observed {
    fn from(stream: AxumBody) -> Self {
        Self {
            whole: Bytes::new(),
            stream: Some(stream),
            open: None,
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        if let Some((journal, record)) = self.open.take() {
            record.lost.store(true, Ordering::Relaxed);
            journal.finished(&record, journal.now());
        }
    }
}
