//! Bodies that are observed. The request's body is recorded while it is read. The response's body
//! records whether it was sent completely.

use std::{
    hash::{DefaultHasher, Hasher},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body as AxumBody;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};

use super::Journal;
use crate::{
    clock::real_time,
    exchange::{Captured, Record},
};

/// How much of an unused body is read at most.
const MAX_DISCARDED: u64 = 2 * 1024 * 1024;

/// How long to wait for more of an unused body, in real time.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(50);

/// A request's body, which keeps its start while it is read. Clones read the same body.
#[derive(Clone, Debug)]
pub(super) struct Tee(Arc<Mutex<Reading>>);

#[derive(Debug)]
struct Reading {
    body: AxumBody,
    start: Vec<u8>,
    length: u64,
    hasher: DefaultHasher,
    /// Whether the body was read completely.
    is_whole: bool,
    has_failed: bool,
}

impl Tee {
    pub(super) fn new(body: AxumBody) -> Self {
        Self(Arc::new(Mutex::new(Reading {
            body,
            start: Vec::new(),
            length: 0,
            hasher: DefaultHasher::new(),
            is_whole: false,
            has_failed: false,
        })))
    }

    /// Takes the part that was read.
    pub(super) fn captured(&self) -> Captured {
        let mut reading = self.lock();
        let digest = reading.is_whole.then(|| reading.hasher.finish());
        let start = std::mem::take(&mut reading.start).into();
        Captured {
            start,
            length: reading.length,
            digest,
        }
    }

    /// Reads the rest of an unused body while it keeps arriving, because the report compares
    /// bodies.
    pub(super) async fn discard(mut self) {
        let is_over = |reading: &Reading| reading.is_whole || reading.has_failed;
        while !is_over(&self.lock()) && self.lock().length <= MAX_DISCARDED {
            tokio::select! {
                biased;
                frame = self.frame() => if frame.is_none() { return },
                () = real_time::sleep(DISCARD_TIMEOUT) => return,
            }
        }
    }

    /// Whether the body was read completely.
    pub(super) fn is_whole(&self) -> bool {
        self.lock().is_whole
    }

    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Body for Tee {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut reading = self.lock();
        let frame = ready!(Pin::new(&mut reading.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                let data = frame.data_ref().map_or(&[][..], |data| data);
                let room = Captured::MAX - reading.start.len();
                reading
                    .start
                    .extend_from_slice(&data[..data.len().min(room)]);
                reading.length += data.len() as u64;
                reading.hasher.write(data);
                reading.is_whole |= reading.body.is_end_stream();
            }
            Some(Err(_)) => reading.has_failed = true,
            None => reading.is_whole |= !reading.has_failed,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().body.size_hint()
    }
}

/// A response's body: bytes, or a stream of the administration. The rules judge the exchange when the body is read or dropped.
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
