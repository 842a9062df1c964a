//! Bodies that are looked at while they pass: the request's as it is read, the answer's to know
//! whether all of it was taken.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker, ready},
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

/// An answer's body, which notes in the journal if not all of it was taken.
pub(super) struct Observed {
    /// What was read of it already.
    first: Option<Bytes>,
    rest: AxumBody,
    /// Nothing once it was taken to its end.
    open: Option<(Arc<Journal>, Arc<Record>)>,
}

/// Reads what a body has at once, which is all of it where it was rendered before.
pub(super) fn peek(body: &mut AxumBody) -> Option<Bytes> {
    let mut context = Context::from_waker(Waker::noop());
    // A body that is not ready asks again when it is read in earnest.
    match Pin::new(body).poll_frame(&mut context) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
        _ => None,
    }
}

impl Observed {
    pub(super) fn new(
        first: Option<Bytes>,
        rest: AxumBody,
        journal: Arc<Journal>,
        record: Arc<Record>,
    ) -> Self {
        Self { first, rest, open: Some((journal, record)) }
    }
}

impl Body for Observed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = match self.first.take() {
            Some(first) => Some(Ok(Frame::data(first))),
            None => ready!(Pin::new(&mut self.rest).poll_frame(context)),
        };
        if frame.is_none() || self.is_end_stream() {
            self.open = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, |first| first.len() as u64);
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(first + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(first + upper);
        }
        hint
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
