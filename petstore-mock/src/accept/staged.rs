//! An answer that a fault ends: before its status line, or in the middle of its body, whose whole
//! length was promised.

use std::{
    future::pending,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::{link::Link, stage::Ending};
use crate::{
    clock::Clock,
    fault::{At, End, How, Script},
    journal::Observed,
};

/// Does to an answer what its script says; what has none is sent as it is.
pub(super) async fn perform(
    mut answer: Response<Observed>,
    link: &Arc<Link>,
    clock: &Clock,
) -> Response<Observed> {
    let script = answer.extensions_mut().remove::<Script>().unwrap_or_default();
    link.stage().set_pace(script.pace, clock);
    match script.end {
        None => answer,
        Some(End { at: At::Start, how }) => {
            match ending(how) {
                Some(ending) => link.stage().end(ending),
                None => link.stage().get_stuck(),
            }
            // Nothing is answered; the connection ends from without.
            pending().await
        }
        Some(End { at: At::Body(bytes), how }) => answer.map(|body| {
            let (link, clock) = (Arc::clone(link), clock.clone());
            let (held, how, wait) = (None, Some(how), None);
            let staged = Staged { body, left: bytes, held, how, wait, link, clock };
            Observed::from(Body::new(staged))
        }),
    }
}

fn ending(how: How) -> Option<Ending> {
    match how {
        How::Reset => Some(Ending::Reset),
        How::Close => Some(Ending::Close),
        How::Stall(_) => None,
    }
}

/// A body that is ended.
struct Staged {
    body: Observed,
    /// How many bytes still go before that.
    left: u64,
    /// What comes after them.
    held: Option<Bytes>,
    /// Nothing once a stall is over.
    how: Option<How>,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    link: Arc<Link>,
    clock: Clock,
}

impl Staged {
    /// Ends the answer, for ever or for a time.
    fn poll_fault(&mut self, context: &mut Context<'_>, how: How) -> Poll<()> {
        let time = match (ending(how), how) {
            (Some(ending), _) => {
                // The connection is ended once what was said before is written.
                self.link.stage().end_after_this(ending);
                return Poll::Pending;
            }
            (None, How::Stall(Some(time))) => time,
            (None, _) => {
                self.link.stage().get_stuck();
                return Poll::Pending;
            }
        };
        ready!(self.wait(time).as_mut().poll(context));
        self.how = None;
        Poll::Ready(())
    }

    fn wait(&mut self, time: Duration) -> &mut Pin<Box<dyn Future<Output = ()> + Send>> {
        let clock = &self.clock;
        self.wait.get_or_insert_with(|| {
            let clock = clock.clone();
            Box::pin(async move { clock.sleep(time).await })
        })
    }

    /// Splits off what still goes before the end.
    fn before_the_end(&mut self, mut data: Bytes) -> Bytes {
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

impl HttpBody for Staged {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if let Some(how) = this.how {
            if this.left == 0 {
                ready!(this.poll_fault(context, how));
            } else {
                let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
                let frame = frame.map(|frame| {
                    frame.map(|frame| frame.map_data(|data| this.before_the_end(data)))
                });
                return Poll::Ready(frame);
            }
        }
        match this.held.take() {
            Some(held) => Poll::Ready(Some(Ok(Frame::data(held)))),
            None => Pin::new(&mut this.body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.how.is_none() && self.held.is_none() && self.body.is_end_stream()
    }

    /// Only asked before the first frame: that is what is promised.
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
