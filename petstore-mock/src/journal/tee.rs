//! Bodies that are looked at while they pass: the request's as it is read, the answer's to know
//! whether all of it was taken.

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
    alarm,
    exchange::{Captured, Record},
};

/// How much is read of a body that the service does not need.
const MAX_DISCARDED: u64 = 2 * 1024 * 1024;

/// How long to wait for more of such a body, in real time.
const DISCARD_TIMEOUT: Duration = Duration::from_millis(50);

/// What has been read of a body so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Arc<Mutex<Progress>>);

#[derive(Debug, Default)]
struct Progress {
    start: Vec<u8>,
    length: u64,
    hasher: DefaultHasher,
    is_whole: bool,
    has_failed: bool,
}

impl Seen {
    fn add(&self, data: &[u8]) {
        let mut seen = lock(&self.0);
        let room = Captured::MOST - seen.start.len();
        seen.start.extend_from_slice(&data[..data.len().min(room)]);
        seen.length += data.len() as u64;
        seen.hasher.write(data);
    }

    /// Takes out what was seen.
    pub(super) fn take(&self) -> Captured {
        let mut seen = lock(&self.0);
        let digest = seen.is_whole.then(|| seen.hasher.finish());
        Captured { start: std::mem::take(&mut seen.start).into(), length: seen.length, digest }
    }
}

/// A request's body, of which the beginning is kept as it is read. Its clones read the same body.
#[derive(Debug)]
pub(crate) struct Tee<B> {
    body: Arc<Mutex<B>>,
    seen: Option<Seen>,
}

impl<B> Tee<B> {
    pub(super) fn new(body: B, seen: Option<Seen>) -> Self {
        Self { body: Arc::new(Mutex::new(body)), seen }
    }
}

impl<B> Clone for Tee<B> {
    fn clone(&self) -> Self {
        Self { body: Arc::clone(&self.body), seen: self.seen.clone() }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Tee<B> {
    /// Reads the rest of a body that the service did not need, as long as it keeps arriving: the
    /// report tells two requests apart by their bodies.
    pub(crate) async fn discard(mut self) {
        let Some(seen) = self.seen.clone() else { return };
        loop {
            {
                let progress = lock(&seen.0);
                let is_over = progress.is_whole || progress.has_failed;
                if is_over || progress.length > MAX_DISCARDED {
                    return;
                }
            }
            tokio::select! {
                biased;
                frame = self.frame() => if !matches!(frame, Some(Ok(_))) { return },
                () = alarm::ring_after(DISCARD_TIMEOUT) => return,
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Body<Data = Bytes> + Unpin> Body for Tee<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut body = lock(&self.body);
        let frame = ready!(Pin::new(&mut *body).poll_frame(context));
        if let Some(seen) = &self.seen {
            if let Some(Ok(frame)) = &frame
                && let Some(data) = frame.data_ref()
            {
                seen.add(data);
            }
            let is_whole = frame.is_none() || matches!(frame, Some(Ok(_))) && body.is_end_stream();
            let mut progress = lock(&seen.0);
            progress.is_whole |= is_whole;
            progress.has_failed |= matches!(frame, Some(Err(_)));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.body).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.body).size_hint()
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
        let whole = std::mem::take(&mut self.whole);
        // Before the bytes go: the client may ask for the report as soon as it has them.
        if let Some((journal, record)) = self.open.take() {
            journal.finished(&record);
        }
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
            record.lost.store(true, Ordering::Relaxed);
            journal.finished(&record);
        }
    }
}
