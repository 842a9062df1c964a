//! The body of a response. A fault may end it before its announced length.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::state::InFlightGuard;
use crate::{fault::EndMode, journal::Observed};

/// The body of a response. A fault may truncate it. Dropping it ends the request in flight.
pub(super) struct ResponseBody {
    body: Observed,
    cut: Option<Cut>,
    in_flight: InFlightGuard,
}

/// The early end of a body, set by a fault.
struct Cut {
    how: EndMode,
    /// The number of bytes after the end, which are announced.
    missing: usize,
}

impl ResponseBody {
    pub(super) fn new(body: Observed, in_flight: InFlightGuard) -> Self {
        Self {
            body,
            cut: None,
            in_flight,
        }
    }

    /// Ends the body after this many bytes.
    pub(super) fn cut(mut self, after: u64, how: EndMode) -> Self {
        let whole = &mut self.body.whole;
        let after = usize::try_from(after).map_or(whole.len(), |after| after.min(whole.len()));
        let missing = whole.split_off(after).len();
        self.cut = Some(Cut { how, missing });
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
        let data = std::mem::take(&mut self.body.whole);
        if data.is_empty()
            && let Some(cut) = &self.cut
        {
            // The connection is ended by the socket, after everything before the end is flushed.
            self.in_flight.end(cut.how);
            return Poll::Pending;
        }
        self.body.judge();
        Poll::Ready((!data.is_empty()).then(|| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        let body = &self.body;
        let is_over = body.stream.as_ref().is_none_or(Body::is_end_stream);
        body.whole.is_empty() && self.cut.is_none() && is_over
    }

    /// Returns the length that is announced. It is called before the first frame.
    fn size_hint(&self) -> SizeHint {
        let missing = self.cut.as_ref().map_or(0, |cut| cut.missing);
        let whole = SizeHint::with_exact((self.body.whole.len() + missing) as u64);
        self.body.stream.as_ref().map_or(whole, Body::size_hint)
    }
}
