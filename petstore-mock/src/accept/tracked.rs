//! Bodies on their way: a request's that must not take for ever, and an answer's, whose end is the end
//! of the exchange.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::BoxError;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::link::Link;
use crate::{alarm, extract::TooSlow, journal::Observed};

/// The body of an answer. When hyper drops it, read to its end or not, the exchange is over.
#[derive(Debug)]
pub(super) struct Tracked {
    body: Observed,
    _at_hand: AtHand,
}

/// A request is at hand while this is there.
#[derive(Debug)]
pub(super) struct AtHand(Arc<Link>);

impl AtHand {
    pub(super) fn new(link: &Arc<Link>) -> Self {
        link.begin();
        Self(Arc::clone(link))
    }

    pub(super) fn until_the_end_of(self, body: Observed) -> Tracked {
        Tracked { body, _at_hand: self }
    }
}

impl Drop for AtHand {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request, which fails with [`TooSlow`] when its time is over.
pub(super) struct Timed {
    body: Incoming,
    limit: Duration,
    /// Set as soon as the body has to be waited for: most are there with their head.
    alarm: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Timed {
    pub(super) fn new(body: Incoming, limit: Duration) -> Self {
        Self { body, limit, alarm: None }
    }
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if this.limit.is_zero() {
            return Poll::Pending;
        }
        let limit = this.limit;
        let alarm = this.alarm.get_or_insert_with(|| Box::pin(alarm::ring_after(limit)));
        alarm.as_mut().poll(context).map(|()| Some(Err(TooSlow.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
