//! Bodies that are looked at while they pass: the request's as it is read, the answer's to know
//! whether all of it was taken.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use axum::body::Body as AxumBody;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::Journal;
use crate::exchange::{Captured, Record};

/// What has been read of a body so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Arc<Mutex<(Vec<u8>, u64)>>);

impl Seen {
    fn add(&self, data: &[u8]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = Captured::MOST - seen.0.len();
        seen.0.extend_from_slice(&data[..data.len().min(room)]);
        seen.1 += data.len() as u64;
    }

    /// Takes out what was seen.
    pub(super) fn take(&self) -> Captured {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Captured { start: std::mem::take(&mut seen.0).into(), length: seen.1 }
    }
}

/// A request's body, of which the beginning is kept as it is read.
#[derive(Debug)]
pub(crate) struct Tee<B> {
    body: B,
    seen: Option<Seen>,
}

impl<B> Tee<B> {
    pub(super) fn new(body: B, seen: Option<Seen>) -> Self {
        Self { body, seen }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Tee<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let (Some(Ok(frame)), Some(seen)) = (&frame, &self.seen)
            && let Some(data) = frame.data_ref()
        {
            seen.add(data);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body: bytes that are there, or a stream of the administration's. It notes in the journal
/// if not all of it was taken.
#[derive(Debug)]
pub(crate) struct Observed {
    /// Empty once it was read.
    whole: Bytes,
    stream: Option<AxumBody>,
    /// Nothing once it was taken to its end, or where nobody wants to know.
    open: Option<(Arc<Journal>, Arc<Record>)>,
}

impl Observed {
    pub(super) fn new(whole: Bytes, journal: Arc<Journal>, record: Arc<Record>) -> Self {
        Self { whole, stream: None, open: Some((journal, record)) }
    }
}

impl From<Bytes> for Observed {
    fn from(whole: Bytes) -> Self {
        Self { whole, stream: None, open: None }
    }
}

impl From<AxumBody> for Observed {
    fn from(stream: AxumBody) -> Self {
        Self { whole: Bytes::new(), stream: Some(stream), open: None }
    }
}

impl Body for Observed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(stream) = &mut self.stream {
            return Pin::new(stream).poll_frame(context);
        }
        self.open = None;
        let whole = std::mem::take(&mut self.whole);
        Poll::Ready((!whole.is_empty()).then(|| Ok(Frame::data(whole))))
    }

    fn is_end_stream(&self) -> bool {
        self.whole.is_empty() && self.stream.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.stream {
            Some(stream) => stream.size_hint(),
            None => SizeHint::with_exact(self.whole.len() as u64),
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        if self.is_end_stream() {
            return;
        }
        if let Some((journal, record)) = self.open.take() {
            journal.lose(&record);
        }
    }
}
