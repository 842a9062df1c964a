//! Records an exchange while it happens. To be cheap, it formats nothing and copies everything
//! once. The recording ends with the response, or when the client leaves.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
};

use axum::body::Body as AxumBody;
use bytes::Bytes;
use http::{Method, Response, request::Parts};

use super::Journal;
use crate::exchange::{Arrival, Caller, Captured, Fields, Record};

/// An exchange in flight. It is stored when it is answered. It is also stored when it is dropped,
/// because the client left or the server stopped.
pub(crate) struct Recording {
    journal: Arc<Journal>,
    record: Arc<Record>,
    is_stored: bool,
}

impl Recording {
    /// Starts the recording of a request.
    pub(crate) fn begin(
        journal: Arc<Journal>,
        caller: Caller,
        arrival: Arrival,
        request: &Parts,
    ) -> Self {
        let record = Arc::new(journal.arrived(caller, arrival, request));
        Self {
            journal,
            record,
            is_stored: false,
        }
    }

    /// Returns what is recorded so far.
    pub(crate) fn record(&mut self) -> &mut Record {
        Arc::get_mut(&mut self.record).expect("it is shared only when it is stored")
    }

    /// Records the names of faults that hit, and whether the client won't receive the whole response.
    pub(crate) fn hit(&mut self, names: Vec<String>, is_lost: bool) {
        let record = self.record();
        record.faults.extend(names.into_iter().map(Cow::from));
        *record.lost.get_mut() |= is_lost;
    }

    /// Stores the exchange with its response, and returns the response to send.
    pub(crate) fn end(mut self, response: Response<Bytes>) -> Response<Observed> {
        let ended = self.journal.now();
        let record = self.record();
        // The body of a response to HEAD is never read.
        let is_read = !response.body().is_empty() && record.method != Method::HEAD;
        record.ended = ended;
        record.status = Some(response.status().as_u16());
        record.reply_fields = Fields::of(response.headers());
        if is_read {
            record.reply_body = Captured::new(response.body(), false);
        }
        self.is_stored = true;
        let (journal, record) = (Arc::clone(&self.journal), Arc::clone(&self.record));
        journal.keep(Arc::clone(&record));
        let mut response = response.map(|body| Observed::new(body, journal, record));
        if !is_read {
            response.body_mut().judge();
        }
        response
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.is_stored {
            return;
        }
        let ended = self.journal.now();
        let record = self.record();
        record.ended = ended;
        *record.lost.get_mut() = true;
        self.journal.finished(&self.record, ended);
        self.journal.keep(Arc::clone(&self.record));
    }
}

/// A response's body: bytes, or a stream of the administration. The rules judge the exchange when the
/// body is read or dropped.
pub(crate) struct Observed {
    pub(crate) whole: Bytes,
    pub(crate) stream: Option<AxumBody>,
    /// The exchange, until it is judged.
    open: Option<(Arc<Journal>, Arc<Record>)>,
}

impl Observed {
    fn new(whole: Bytes, journal: Arc<Journal>, record: Arc<Record>) -> Self {
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
