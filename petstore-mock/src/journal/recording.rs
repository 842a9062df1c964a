//! What is noted of an exchange while it happens, at next to no cost: nothing is formatted, and what
//! is kept is copied once. It ends with the answer, or without one where the client leaves before.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response,
    header::{AUTHORIZATION, USER_AGENT},
};
use hyper::body::Body as _;

use super::{
    Journal,
    tee::{Observed, Tee},
};
use crate::{
    clock::Clock,
    exchange::{Admission, Captured, Fields, InFlight, KeyFlaw, KeyLabel, Moment, Record},
    operation::Operation,
    quota::Rate,
    report::Sender,
};

/// Who sent a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) peer: IpAddr,
    /// The number of the connection, from 1.
    pub(crate) connection: u64,
    /// When the connection was accepted.
    pub(crate) opened: Moment,
    /// 1-based index of the request on its connection.
    pub(crate) nth: u64,
    /// Whether its connection is one too many.
    pub(crate) is_over_limit: bool,
}

/// What was found out about a request before it was routed.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// On the mock's clock, since the Unix epoch.
    pub(crate) now: Duration,
    pub(crate) target: Arc<str>,
    pub(crate) operation: Option<Operation>,
    pub(crate) key: Option<Arc<KeyLabel>>,
    pub(crate) flaw: Option<KeyFlaw>,
    pub(crate) credentials: u64,
    pub(crate) admission: Admission,
    pub(crate) rate: Option<Rate>,
}

/// The id of the pet that an answer of the service is about, if it was added by this request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedPet(pub(crate) i64);

/// An exchange that is under way. It is kept when it is answered, or when it is dropped, because the
/// client has left or the server ends.
#[derive(Debug)]
pub(crate) struct Recording {
    journal: Arc<Journal>,
    clock: Clock,
    /// The body of the request, where it has one.
    body: Option<Tee<Body>>,
    /// Nothing once it is kept.
    record: Option<Record>,
}

impl Recording {
    /// Begins to record a request, whose body is to be read from what comes with it.
    pub(crate) fn begin(
        journal: Arc<Journal>,
        clock: Clock,
        caller: Caller,
        arrival: Arrival,
        request: Request<Body>,
    ) -> (Self, Request<Body>) {
        let arrived = journal.moment(arrival.now);
        let headers = request.headers();
        let sender = Sender {
            scope: headers.get("x-mock-scope").map(HeaderValue::as_bytes),
            key: arrival.key.as_ref(),
            credentials: arrival.credentials,
            has_credentials: headers.contains_key(AUTHORIZATION),
            user_agent: headers.get(USER_AGENT).map(HeaderValue::as_bytes),
        };
        let in_flight = match arrival.admission {
            // The rules judge requests that were read.
            Admission::Rejected => InFlight::default(),
            _ => journal.arrived(&sender, &arrived, (&caller.opened, caller.nth)),
        };
        let record = Record {
            number: journal.next_number(),
            connection: caller.connection,
            opened: caller.opened,
            nth: caller.nth,
            in_flight,
            arrived,
            ended: arrived,
            method: request.method().clone(),
            version: request.version(),
            target: arrival.target,
            fields: Fields::of(request.headers()),
            body: Captured::none(),
            key: arrival.key,
            flaw: arrival.flaw,
            operation: arrival.operation,
            admission: arrival.admission,
            rate: arrival.rate,
            status: None,
            reply_fields: Fields::default(),
            reply_body: Captured::default(),
            added: None,
            note: None,
            faults: Vec::new(),
            lost: AtomicBool::new(false),
        };
        let mut tee = None;
        let request = request.map(|body| {
            if body.is_end_stream() { body } else { Body::new(tee.insert(Tee::new(body)).clone()) }
        });
        (Self { journal, clock, body: tee, record: Some(record) }, request)
    }

    /// Begins to record what never became a request; `head` is how it began.
    pub(crate) fn refusal(
        journal: Arc<Journal>,
        clock: Clock,
        caller: Caller,
        rate: Rate,
        head: &[u8],
    ) -> Self {
        let line = head.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
        let mut words = line.splitn(2, |byte| *byte == b' ');
        let method = words.next().and_then(|word| Method::from_bytes(word).ok());
        // As in access logs: a hyphen stands for what is not known.
        let unknown = || Method::from_bytes(b"-").unwrap_or_default();
        let rest = words.next().unwrap_or_default();
        let target = rest.split(|byte| *byte == b' ').next().filter(|_| method.is_some());
        let target = String::from_utf8_lossy(target.unwrap_or(line)).into_owned();
        let arrival = Arrival {
            now: clock.since_epoch(),
            target: if target.is_empty() { "-".into() } else { target.into() },
            operation: None,
            key: None,
            flaw: None,
            credentials: 0,
            admission: Admission::Rejected,
            rate: Some(rate),
        };
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method.unwrap_or_else(unknown);
        Self::begin(journal, clock, caller, arrival, request).0
    }

    /// Adds what else there is to know of this exchange.
    pub(crate) fn note(&mut self, note: &'static str) {
        if let Some(record) = &mut self.record {
            record.note = Some(note);
        }
    }

    /// Records that a fault hits this exchange.
    pub(crate) fn hit_by(&mut self, fault: impl Into<Cow<'static, str>>) {
        if let Some(record) = &mut self.record {
            record.faults.push(fault.into());
        }
    }

    /// Reads the rest of a body that the service did not need.
    pub(crate) async fn discard_body(&self) {
        if let Some(body) = &self.body {
            body.clone().discard().await;
        }
    }

    /// Records the pet that the service added for this request, if its answer names one.
    pub(crate) fn note_added<B>(&mut self, answer: &Response<B>) {
        if let Some(record) = &mut self.record {
            record.added = answer.extensions().get().map(|AddedPet(id)| *id);
        }
    }

    /// Notes that the client won't get all of the answer, because a fault sees to that.
    pub(crate) fn lose(&mut self) {
        if let Some(record) = &mut self.record {
            *record.lost.get_mut() = true;
        }
    }

    /// Keeps the exchange with its answer, and returns the answer, to be sent instead.
    pub(crate) fn end(mut self, response: Response<Bytes>) -> Response<Observed> {
        let Some(mut record) = self.take() else {
            return response.map(Observed::from);
        };
        record.status = Some(response.status().as_u16());
        record.reply_fields = Fields::of(response.headers());
        // The body of an answer to HEAD is never read.
        let is_read = record.method != Method::HEAD && !response.body().is_empty();
        if is_read {
            record.reply_body = Captured::whole(response.body());
        }
        let record = Arc::new(record);
        self.journal.keep(Arc::clone(&record));
        if !is_read {
            self.journal.finished(&record);
            return response.map(Observed::from);
        }
        response.map(|body| Observed::new(body, Arc::clone(&self.journal), record))
    }

    /// Takes the record out, with what is known at its end.
    fn take(&mut self) -> Option<Record> {
        let mut record = self.record.take()?;
        record.ended = self.journal.moment(self.clock.since_epoch());
        if let Some(body) = &self.body {
            record.body = body.captured();
        }
        Some(record)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(mut record) = self.take() {
            *record.lost.get_mut() = true;
            self.journal.finished(&record);
            self.journal.keep(Arc::new(record));
        }
    }
}
