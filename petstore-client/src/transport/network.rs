//! Sends one attempt, without retries, rate limits or redirects.

use std::convert::Infallible;
use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{io, iter};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::custom::{DynTransport, ResponseLimit, TransportError};
use crate::clock;
use crate::error::{Error, ErrorResponse, MAX_ERROR_BODY, TimeoutKind};
use crate::request::Request;

/// The limits of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptLimits {
    pub(crate) deadline: Instant,
    /// The time limit that expires at the deadline.
    pub(crate) limit: (TimeoutKind, Duration),
    pub(crate) read_timeout: Duration,
    pub(crate) max_bytes: usize,
}

impl AttemptLimits {
    fn timed_out(&self, sent: bool) -> Error {
        let (kind, after) = self.limit;
        Error::timed_out(kind, after, sent)
    }
}

/// Sends requests to a service.
pub(crate) struct Network {
    /// The origin of the base URL, for messages.
    origin: String,
    route: Route,
}

pub(crate) enum Route {
    Builtin {
        http: reqwest::Client,
        connect_timeout: Duration,
    },
    Custom(Box<dyn DynTransport>),
}

impl Network {
    pub(crate) fn new(base: &Url, route: Route) -> Self {
        Self {
            origin: base.origin().ascii_serialization(),
            route,
        }
    }

    /// Sends a request with these headers instead of its own. Sets `sent` before the service can
    /// receive it. Returns when the head of the response has arrived.
    pub(crate) async fn send(
        &self,
        request: &Request,
        headers: HeaderMap,
        limits: &AttemptLimits,
        sent: &Arc<AtomicBool>,
    ) -> Result<reqwest::Response, Error> {
        match &self.route {
            Route::Builtin {
                http,
                connect_timeout,
            } => {
                let mut outgoing =
                    reqwest::Request::new(request.method.clone(), request.url.clone());
                *outgoing.headers_mut() = headers;
                let body = OutgoingBody {
                    data: request.body.clone(),
                    sent: Arc::clone(sent),
                };
                *outgoing.body_mut() = Some(reqwest::Body::wrap(body));
                match timeout_at(limits.deadline, http.execute(outgoing)).await {
                    Ok(response) => response.map_err(|error| self.error(error, *connect_timeout)),
                    Err(_) => {
                        // A connection that just took the request sets `sent` now.
                        tokio::task::yield_now().await;
                        Err(limits.timed_out(sent.load(Ordering::Acquire)))
                    }
                }
            }
            Route::Custom(transport) => {
                let mut outgoing = request.to_http(headers)?;
                outgoing
                    .extensions_mut()
                    .insert(ResponseLimit(limits.max_bytes));
                sent.store(true, Ordering::Release);
                match timeout_at(limits.deadline, transport.dyn_send(outgoing)).await {
                    Ok(response) => response
                        .map(reqwest::Response::from)
                        .map_err(|error| error.into_error(&self.origin, limits.max_bytes)),
                    Err(_) => Err(limits.timed_out(true)),
                }
            }
        }
    }

    fn error(&self, error: reqwest::Error, connect_timeout: Duration) -> Error {
        let error = error.without_url();
        if error.is_builder() {
            return Error::invalid(error);
        }
        if error.is_connect() && error.is_timeout() {
            return Error::timed_out(TimeoutKind::Connect, connect_timeout, false);
        }
        let error = if !error.is_connect() {
            TransportError::interrupted(error)
        } else if is_handshake(&error) {
            TransportError::tls(error)
        } else {
            TransportError::connect(error)
        };
        error.into_error(&self.origin, 0)
    }
}

/// Returns whether the TLS handshake failed: rustls reports invalid data, and nothing else reads
/// data before a request is sent.
fn is_handshake(error: &reqwest::Error) -> bool {
    let mut causes = iter::successors(error.source(), |&cause| cause.source());
    causes.any(|cause| cause.downcast_ref().is_some_and(is_invalid_data))
}

/// Also searches wrapped I/O errors, which `source` does not return.
fn is_invalid_data(error: &io::Error) -> bool {
    let inner = || error.get_ref().and_then(|inner| inner.downcast_ref());
    error.kind() == io::ErrorKind::InvalidData || inner().is_some_and(is_invalid_data)
}

/// Reads the body of a response: at most `max_bytes` of a success, and 64 KiB of an error.
pub(crate) async fn read(
    mut response: reqwest::Response,
    limits: &AttemptLimits,
) -> Result<http::Response<Bytes>, Error> {
    let status = response.status();
    let is_error = !status.is_success();
    let max = if is_error {
        limits.max_bytes.min(MAX_ERROR_BODY)
    } else {
        limits.max_bytes
    };
    let body = read_body(&mut response, max, limits).await;
    let headers = std::mem::take(response.headers_mut());
    let body = match body {
        Ok(body) if body.len() <= max => body,
        // The status of an error matters more than the end of its body.
        Ok(body) if is_error => body.slice(..max),
        Err(_) if is_error => Bytes::new(),
        Ok(_) => {
            let response = ErrorResponse {
                status,
                headers,
                ..ErrorResponse::default()
            };
            let error = TransportError::body_too_large().into_error("", max);
            return Err(error.with_response(response));
        }
        Err(error) => return Err(error),
    };
    let mut whole = http::Response::new(body);
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    Ok(whole)
}

/// Reads a body, or slightly more than `max` bytes of it.
async fn read_body(
    response: &mut reqwest::Response,
    max: usize,
    limits: &AttemptLimits,
) -> Result<Bytes, Error> {
    let mut body = Bytes::new();
    while let Some(chunk) = read_chunk(response, limits).await? {
        if body.is_empty() {
            // The usual case: a single chunk, which is not copied.
            body = chunk;
        } else {
            let mut longer = BytesMut::from(body);
            longer.extend_from_slice(&chunk);
            body = longer.freeze();
        }
        if body.len() > max {
            break;
        }
    }
    Ok(body)
}

async fn read_chunk(
    response: &mut reqwest::Response,
    limits: &AttemptLimits,
) -> Result<Option<Bytes>, Error> {
    let read_end = clock::after(clock::now(), limits.read_timeout);
    match timeout_at(read_end.min(limits.deadline), response.chunk()).await {
        Ok(chunk) => chunk
            .map_err(|error| TransportError::interrupted(error.without_url()).into_error("", 0)),
        Err(_) if read_end < limits.deadline => Err(Error::timed_out(
            TimeoutKind::Read,
            limits.read_timeout,
            true,
        )),
        Err(_) => Err(limits.timed_out(true)),
    }
}

/// The body of a request. It records when a connection starts to write the request, because the
/// connection calls `is_end_stream` first. Before that, nothing can have reached the service.
struct OutgoingBody {
    data: Bytes,
    sent: Arc<AtomicBool>,
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = std::mem::take(&mut self.data);
        Poll::Ready((!data.is_empty()).then(|| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.sent.store(true, Ordering::Release);
        self.data.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.len() as u64)
    }
}
