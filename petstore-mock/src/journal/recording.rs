//! Records an exchange while it happens. To be cheap, it formats nothing and copies everything
//! once. The recording ends with the response, or when the client leaves.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::AtomicBool},
};

use bytes::Bytes;
use http::{Method, Response, request::Parts};

use super::{Journal, observed::Observed};
use crate::exchange::{Arrival, Caller, Captured, Fields, Record};

/// An exchange in flight. It is stored when it is answered. It is also stored when it is dropped,
/// because the client left or the server stopped.
#[derive(Debug)]
pub(crate) struct Recording {
    journal: Arc<Journal>,
    /// `None` after it was stored.
    record: Option<Arc<Record>>,
}

impl Recording {
    /// Starts the recording of a request.
    pub(crate) fn begin(
        journal: Arc<Journal>,
        caller: Caller,
        arrival: Arrival,
        request: &Parts,
    ) -> Self {
        let arrived = journal.moment(arrival.now);
        let record = Record {
            number: journal.next_number(),
            caller,
            arrival,
            boundary: journal.boundary(),
            arrived,
            ended: arrived,
            method: request.method.clone(),
            fields: Fields::of(&request.headers),
            body: Captured::default(),
            status: None,
            reply_fields: Fields::default(),
            reply_body: Captured::default(),
            added: None,
            note: None,
            faults: Vec::new(),
            lost: AtomicBool::new(false),
        };
        journal.arrived();
        Self {
            journal,
            record: Some(Arc::new(record)),
        }
    }

    /// Records the body of the request, or the part that was read.
    pub(crate) fn read(&mut self, body: &[u8], is_partial: bool) {
        self.update(|record| record.body = Captured::new(body, is_partial));
    }

    /// Records the pet that the request created.
    pub(crate) fn added(&mut self, id: i64) {
        self.update(|record| record.added = Some(id));
    }

    /// Records a remark.
    pub(crate) fn note(&mut self, note: &'static str) {
        self.update(|record| record.note = Some(note));
    }

    /// Records the names of faults that hit, and whether the client won't receive the whole response.
    pub(crate) fn hit(&mut self, names: Vec<String>, is_lost: bool) {
        self.update(|record| {
            record.faults.extend(names.into_iter().map(Cow::from));
            *record.lost.get_mut() |= is_lost;
        });
    }

    /// Changes the record of a request in flight.
    fn update(&mut self, change: impl FnOnce(&mut Record)) {
        // It is shared only when it is stored.
        if let Some(record) = self.record.as_mut().and_then(Arc::get_mut) {
            change(record);
        }
    }

    /// Stores the exchange with its response, and returns the response to send.
    pub(crate) fn end(mut self, response: Response<Bytes>) -> Response<Observed> {
        // The body of a response to HEAD is never read.
        let mut is_read = !response.body().is_empty();
        self.update(|record| {
            is_read &= record.method != Method::HEAD;
            record.status = Some(response.status().as_u16());
            record.reply_fields = Fields::of(response.headers());
            if is_read {
                record.reply_body = Captured::reply(response.body());
            }
        });
        let Some(record) = self.take() else {
            return response.map(Observed::from);
        };
        self.journal.keep(Arc::clone(&record));
        if !is_read {
            self.journal.finished(&record, record.ended);
            return response.map(Observed::from);
        }
        response.map(|body| Observed::new(body, Arc::clone(&self.journal), record))
    }

    /// Takes the record, and adds its end.
    fn take(&mut self) -> Option<Arc<Record>> {
        let ended = self.journal.now();
        self.update(|record| record.ended = ended);
        self.record.take()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // An answered request is stored already.
        if self.record.is_none() {
            return;
        }
        self.update(|record| *record.lost.get_mut() = true);
        if let Some(record) = self.take() {
            self.journal.finished(&record, record.ended);
            self.journal.keep(record);
        }
    }
}
