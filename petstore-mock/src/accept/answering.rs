//! One request of a connection, from its head to the first byte of its answer, and whether the
//! connection outlives it. What is answered is left to `router`.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{
    HeaderValue, Request, Response, StatusCode, Version,
    header::{CONNECTION, EXPECT},
};
use hyper::body::{Body as _, Incoming};

use super::{
    connection::Terms,
    link::Link,
    message, staged,
    tracked::{AtHand, Timed, Tracked},
};
use crate::{
    error::ApiError,
    journal::{Caller, Observed},
    router::Answer,
};

/// A body as short as this is on its way already when the request is answered: no need to close.
const SHORT: u64 = 8 * 1024;

/// Answers a request: at once, unless something has to be waited for.
pub(super) fn answer(
    request: Request<Incoming>,
    caller: Caller,
    terms: &Arc<Terms>,
    link: &Arc<Link>,
) -> Answering {
    let at_hand = AtHand::new(link);
    let ask = Ask::of(&request);
    let refusal = if terms.is_one_too_many {
        Some(ApiError::overloaded())
    } else {
        message::refusal(&request)
    };
    let is_refused = refusal.is_some();
    let answer = match refusal {
        Some(error) => Answer::Now(terms.front.refuse(error).map(Observed::from)),
        None => terms.front.answer(caller, request.map(|body| Timed::new(body, terms.limits.body))),
    };
    match answer {
        Answer::Now(response) => {
            link.stage().set_pace(None, terms.front.clock());
            Answering::Now(Some(ask.finish(response, is_refused, link, at_hand)))
        }
        Answer::Later(answer) => {
            let (terms, link) = (Arc::clone(terms), Arc::clone(link));
            Answering::Later(Box::pin(async move {
                let response = staged::perform(answer.await, &link, terms.front.clock()).await;
                ask.finish(response, is_refused, &link, at_hand)
            }))
        }
    }
}

/// The answer to a request, as hyper waits for it.
pub(super) enum Answering {
    /// Nothing once it was given.
    Now(Option<Response<Tracked>>),
    Later(Pin<Box<dyn Future<Output = Response<Tracked>> + Send>>),
}

impl Future for Answering {
    type Output = Result<Response<Tracked>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Now(response) => response.take().map_or(Poll::Pending, |it| Poll::Ready(Ok(it))),
            Self::Later(answer) => answer.as_mut().poll(context).map(Ok),
        }
    }
}

/// What of a request decides how its answer ends.
struct Ask {
    /// Whether the body may be on its way still when the request is answered.
    has_long_body: bool,
    is_multiplexed: bool,
}

impl Ask {
    fn of(request: &Request<Incoming>) -> Self {
        // Whether who hears no 100 sends the body nevertheless, nobody knows.
        let is_unsure = request.headers().contains_key(EXPECT);
        let is_long = request.body().size_hint().upper().is_none_or(|all| all > SHORT);
        let is_multiplexed = request.version() == Version::HTTP_2;
        Self { has_long_body: is_unsure || is_long, is_multiplexed }
    }

    fn finish(
        &self,
        mut response: Response<Observed>,
        is_refused: bool,
        link: &Link,
        at_hand: AtHand,
    ) -> Response<Tracked> {
        let leaves_body = self.has_long_body && leaves_the_body(&response);
        if (leaves_body || is_refused) && !self.is_multiplexed {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            link.leave_unread();
        }
        response.map(|body| at_hand.until_the_end_of(body))
    }
}

/// Whether a request is answered like this before its body was read to the end.
fn leaves_the_body(response: &Response<Observed>) -> bool {
    matches!(
        response.status(),
        StatusCode::UNAUTHORIZED
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::GONE
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    )
}
