//! The body of a response, which a fault may end before its announced length.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::state::Shared;
use crate::{clock::Clock, fault::How, journal::Observed};

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The end that a fault gives a body.
pub(super) struct Cut {
    /// The number of bytes before the end.
    left: u64,
    /// The bytes after the end.
    held: Option<Bytes>,
    /// `None` after a stall.
    how: Option<How>,
    sleep: Option<Sleep>,
    clock: Clock,
}

impl Cut {
    pub(super) fn new(after: u64, how: How, clock: Clock) -> Self {
        Self { left: after, held: None, how: Some(how), sleep: None, clock }
    }

    /// Ends the body, permanently or for some time.
    fn poll_end(&mut self, context: &mut Context<'_>, state: &Shared, how: How) -> Poll<()> {
        let How::Stall(Some(time)) = how else {
            // The socket ends the connection when everything before is flushed.
            state.end(how);
            return Poll::Pending;
        };
        let sleep = self.sleep.get_or_insert_with(|| {
            let clock = self.clock.clone();
            Box::pin(async move { clock.sleep(time).await })
        });
        ready!(sleep.as_mut().poll(context));
        self.how = None;
        Poll::Ready(())
    }

    /// Returns the bytes before the end, and keeps the rest.
    fn split(&mut self, mut data: Bytes) -> Bytes {
        let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
        match usize::try_from(self.left) {
            Ok(left) if length > self.left => {
                self.held = Some(data.split_off(left));
                self.left = 0;
            }
            _ => self.left = self.left.saturating_sub(length),
        }
        data
    }
}

/// The body of a response. A fault may truncate it. Dropping it ends the request in flight.
pub(super) struct ResponseBody {
    body: Option<Observed>,
    cut: Option<Box<Cut>>,
    state: Shared,
}

impl ResponseBody {
    /// Marks a request as in flight.
    pub(super) fn in_flight(state: Shared) -> Self {
        state.lock().begin();
        Self { body: None, cut: None, state }
    }

    pub(super) fn with(mut self, body: Observed, cut: Option<Cut>) -> Self {
        (self.body, self.cut) = (Some(body), cut.map(Box::new));
        self
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.state.lock().finish();
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let Some(cut) = &mut this.cut else { return Pin::new(body).poll_frame(context) };
        if let Some(how) = cut.how {
            if cut.left > 0 {
                let frame = ready!(Pin::new(body).poll_frame(context));
                let split = |frame: Frame<Bytes>| frame.map_data(|data| cut.split(data));
                return Poll::Ready(frame.map(|frame| frame.map(split)));
            }
            ready!(cut.poll_end(context, &this.state, how));
        }
        match cut.held.take() {
            Some(held) => Poll::Ready(Some(Ok(Frame::data(held)))),
            None => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_cut = self.cut.as_ref().is_some_and(|cut| cut.how.is_some() || cut.held.is_some());
        !is_cut && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    /// Called before the first frame, for the announced length.
    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
