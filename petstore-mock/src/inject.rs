//! Faults meet HTTP here: an answer is taken apart, changed, and put together again. Which faults hit a
//! request is `fault`'s affair; what they want of the socket goes along for `accept` to carry out.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt;

use crate::{
    fault::{Answer, Chosen, Script},
    journal::Recording,
};

/// How much is read of a request that is not carried out: more than the service takes.
const MOST_READ: usize = 2 * 1024 * 1024;

/// Answers a request that is not carried out. Its body is read all the same, as the service would:
/// or the client might lose the answer while it is still sending.
pub(crate) async fn leave_undone<B>(request: Request<B>) -> Response<Bytes>
where
    B: hyper::body::Body<Data = Bytes>,
{
    let mut body = pin!(request.into_body());
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MOST_READ {
            break;
        }
    }
    response(Answer::unavailable())
}

/// Lets the faults happen to an answer, and notes those that did.
pub(crate) fn inject(
    faults: &mut Chosen,
    now: Duration,
    method: &Method,
    answer: Response<Bytes>,
    recording: &mut Recording,
) -> Response<Bytes> {
    let (parts, body) = answer.into_parts();
    let mut answer = Answer {
        status: parts.status,
        headers: parts.headers,
        body,
        is_head: method == Method::HEAD,
        now,
        script: Script::default(),
    };
    for name in faults.act(&mut answer) {
        recording.hit_by(name);
    }
    if answer.script.end.is_some_and(|end| end.loses_the_answer()) {
        recording.lose();
    }
    response(answer)
}

fn response(answer: Answer) -> Response<Bytes> {
    let mut response = Response::new(answer.body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    if !answer.script.is_plain() {
        response.extensions_mut().insert(answer.script);
    }
    response
}
