//! Records an exchange while it happens. To be cheap, it formats nothing and copies everything
//! once. The recording ends with the response, or when the client leaves.

use std::sync::{Arc, atomic::AtomicBool};

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response};
use hyper::body::Body as _;

use super::{
    Journal,
    tee::{Observed, Tee},
};
use crate::exchange::{Admission, Arrival, Caller, Captured, Fields, Record};

/// The id of the pet that this request created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedPet(pub(crate) i64);

/// An exchange in flight. It is stored when it is answered. It is also stored when it is dropped,
/// because the client left or the server stopped.
#[derive(Debug)]
pub(crate) struct Recording {
    journal: Arc<Journal>,
    /// The body of the request, if it has one.
    body: Option<Tee>,
    /// `None` after it was stored.
    record: Option<Arc<Record>>,
}

impl Recording {
    /// Starts the recording of a request. Its body must be read from the returned request.
    pub(crate) fn begin(
        journal: Arc<Journal>,
        caller: Caller,
        arrival: Arrival,
        request: Request<Body>,
    ) -> (Self, Request<Body>) {
        let arrived = journal.moment(arrival.now);
        let record = Record {
            number: journal.next_number(),
            caller,
            arrival,
            boundary: journal.boundary(),
            arrived,
            ended: arrived,
            method: request.method().clone(),
            fields: Fields::of(request.headers()),
            body: Captured::none(),
            status: None,
            reply_fields: Fields::default(),
            reply_body: Captured::default(),
            added: None,
            note: None,
            faults: Vec::new(),
            lost: AtomicBool::new(false),
        };
        // The rules judge only valid requests.
        if record.arrival.admission != Admission::Rejected {
            journal.arrived();
        }
        let mut tee = None;
        let request = request.map(|body| {
            if body.is_end_stream() {
                body
            } else {
                Body::new(tee.insert(Tee::new(body)).clone())
            }
        });
        (
            Self {
                journal,
                body: tee,
                record: Some(Arc::new(record)),
            },
            request,
        )
    }

    /// Changes the record of a request in flight.
    pub(crate) fn update(&mut self, change: impl FnOnce(&mut Record)) {
        // It is shared only when it is stored.
        if let Some(record) = self.record.as_mut().and_then(Arc::get_mut) {
            change(record);
        }
    }

    /// Reads and discards the rest of a body that no handler has read.
    pub(crate) async fn discard_body(&self) {
        if let Some(body) = &self.body {
            body.clone().discard().await;
        }
    }

    /// Whether the client may still send a part of the body.
    pub(crate) fn has_unread_body(&self) -> bool {
        self.body.as_ref().is_some_and(|body| !body.is_whole())
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
                record.reply_body = Captured::whole(response.body());
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

    /// Takes the record, and adds its end and its body.
    fn take(&mut self) -> Option<Arc<Record>> {
        let ended = self.journal.now();
        let body = self.body.as_ref().map(Tee::captured);
        self.update(|record| {
            record.ended = ended;
            if let Some(body) = body {
                record.body = body;
            }
        });
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
