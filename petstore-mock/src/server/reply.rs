//! The body of a response. A fault may end it before its announced length.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::state::InFlight;
use crate::{fault::EndMode, journal::Observed};

/// The body of a response. A fault may truncate it. Dropping it ends the request in flight.
pub(super) struct ResponseBody {
    body: Observed,
    /// The number of bytes that are announced, but not sent.
    missing: usize,
    /// How a fault ends the response after the bytes that are sent.
    end: Option<EndMode>,
    in_flight: InFlight,
}

impl ResponseBody {
    pub(super) fn new(body: Observed, in_flight: InFlight) -> Self {
        Self {
            body,
            missing: 0,
            end: None,
            in_flight,
        }
    }

    /// Ends the body after this many bytes.
    pub(super) fn cut(mut self, after: u64, how: EndMode) -> Self {
        let whole = &mut self.body.whole;
        let after = usize::try_from(after).map_or(whole.len(), |after| after.min(whole.len()));
        self.missing = whole.split_off(after).len();
        self.end = Some(how);
        self
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(stream) = &mut self.body.stream {
            let frame = ready!(Pin::new(&mut *stream).poll_frame(context));
            if frame.is_none() || stream.is_end_stream() {
                self.body.judge();
            }
            return Poll::Ready(frame);
        }
        let data = mem::take(&mut self.body.whole);
        match self.end {
            Some(how) if data.is_empty() => {
                // The socket ends the connection, after everything before the end is flushed.
                self.in_flight.end(how);
                return Poll::Pending;
            }
            _ => self.body.judge(),
        }
        Poll::Ready((!data.is_empty()).then(|| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        let is_over = self.body.stream.as_ref().is_none_or(Body::is_end_stream);
        self.body.whole.is_empty() && self.end.is_none() && is_over
    }

    /// Returns the length that is announced. It is called before the first frame.
    fn size_hint(&self) -> SizeHint {
        let whole = SizeHint::with_exact((self.body.whole.len() + self.missing) as u64);
        self.body.stream.as_ref().map_or(whole, Body::size_hint)
    }
}
