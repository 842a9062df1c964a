//! Makes one attempt, and knows no policy: no retry, no rate limit, no redirect.

use std::convert::Infallible;
use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io, iter};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::custom::{DynTransport, ResponseLimit, TransportError};
use crate::clock;
use crate::error::{Failure, MAX_ERROR_BODY, TimeoutKind};
use crate::http::base_url::same_origin;

/// A request without its credential.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// The body, empty where there is none; its content type is among the headers.
    pub(crate) body: Bytes,
}

/// The limits of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptLimits {
    /// When the attempt has to end, and the limit that says so.
    pub(crate) deadline: Instant,
    pub(crate) kind: TimeoutKind,
    pub(crate) after: Duration,
    pub(crate) read_timeout: Duration,
    pub(crate) max_bytes: usize,
}

impl AttemptLimits {
    fn timed_out(&self, sent: bool) -> Failure {
        Failure::Timeout { limit: self.kind, after: self.after, sent }
    }
}

/// Sends requests, to one origin only: by the built-in HTTP client or by the program's transport.
pub(crate) struct Network {
    base: Url,
    route: Route,
}

enum Route {
    Builtin { http: reqwest::Client, connect_timeout: Duration },
    Custom(Box<dyn DynTransport>),
}

/// The body of a response whose head has come.
pub(crate) enum PendingBody {
    Stream(reqwest::Response),
    Whole(Bytes),
}

impl Network {
    pub(crate) fn builtin(base: Url, http: reqwest::Client, connect_timeout: Duration) -> Self {
        Self { base, route: Route::Builtin { http, connect_timeout } }
    }

    pub(crate) fn custom(base: Url, transport: Box<dyn DynTransport>) -> Self {
        Self { base, route: Route::Custom(transport) }
    }

    /// Sends a request with these headers, in place of its own.
    pub(crate) async fn send(
        &self,
        request: &HttpRequest,
        headers: HeaderMap,
        limits: &AttemptLimits,
    ) -> Result<Response<PendingBody>, Failure> {
        // The last guard before the key leaves: whatever built the request, it goes home only.
        if !same_origin(&request.url, &self.base) {
            let problem = "it leads to another origin than the base URL's";
            return Err(Failure::InvalidRequest(problem.to_owned()));
        }
        match &self.route {
            Route::Builtin { http, connect_timeout } => {
                let mut outgoing =
                    reqwest::Request::new(request.method.clone(), request.url.clone());
                *outgoing.headers_mut() = headers;
                let writing = Arc::new(AtomicBool::new(false));
                let body =
                    OutgoingBody { data: request.body.clone(), writing: Arc::clone(&writing) };
                *outgoing.body_mut() = Some(reqwest::Body::wrap(body));
                match timeout_at(limits.deadline, http.execute(outgoing)).await {
                    Ok(Ok(response)) => Ok(pending(response)),
                    Ok(Err(error)) => Err(self.classify(error, *connect_timeout)),
                    Err(_) => {
                        // The request is given up. A connection that took it just before notes it now.
                        tokio::task::yield_now().await;
                        Err(limits.timed_out(writing.load(Ordering::Acquire)))
                    }
                }
            }
            Route::Custom(transport) => {
                let mut outgoing = request.to_http()?;
                *outgoing.headers_mut() = headers;
                outgoing.extensions_mut().insert(ResponseLimit(limits.max_bytes));
                match timeout_at(limits.deadline, transport.dyn_send(outgoing)).await {
                    Ok(Ok(response)) => Ok(response.map(PendingBody::Whole)),
                    Ok(Err(error)) => Err(error.into_failure(|| self.origin(), limits.max_bytes)),
                    Err(_) => Err(limits.timed_out(true)),
                }
            }
        }
    }

    fn classify(&self, error: reqwest::Error, connect_timeout: Duration) -> Failure {
        let error = error.without_url();
        if error.is_builder() {
            return Failure::InvalidRequest(error.to_string());
        }
        if error.is_connect() && error.is_timeout() {
            let limit = TimeoutKind::Connect;
            return Failure::Timeout { limit, after: connect_timeout, sent: false };
        }
        let error = if !error.is_connect() {
            TransportError::interrupted(error)
        } else if is_handshake(&error) {
            TransportError::tls(error)
        } else {
            TransportError::connect(error)
        };
        error.into_failure(|| self.origin(), 0)
    }

    fn origin(&self) -> String {
        self.base.origin().ascii_serialization()
    }
}

impl HttpRequest {
    /// Returns the request as other HTTP libraries know it.
    pub(crate) fn to_http(&self) -> Result<http::Request<Bytes>, Failure> {
        let mut request = http::Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = self.headers.clone();
        *request.uri_mut() = self.url.as_str().parse().map_err(|_| {
            Failure::InvalidRequest("its address cannot be written into a request".to_owned())
        })?;
        Ok(request)
    }
}

fn pending(mut response: reqwest::Response) -> Response<PendingBody> {
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let mut pending = Response::new(PendingBody::Stream(response));
    (*pending.status_mut(), *pending.headers_mut()) = (status, headers);
    pending
}

/// Returns whether a connection came about and TLS over it did not: rustls reports invalid data,
/// which nothing else reads before a request is sent.
fn is_handshake(error: &reqwest::Error) -> bool {
    let mut causes = iter::successors(error.source(), |&cause| cause.source());
    causes.any(|cause| cause.downcast_ref().is_some_and(is_invalid_data))
}

/// An I/O error is no cause of the one that it is wrapped in, but in it.
fn is_invalid_data(error: &io::Error) -> bool {
    let inner = || error.get_ref().and_then(|inner| inner.downcast_ref());
    error.kind() == io::ErrorKind::InvalidData || inner().is_some_and(is_invalid_data)
}

/// Reads the body of a response: of a success up to the limit, of an error as much as is useful.
pub(crate) async fn read(
    response: Response<PendingBody>,
    limits: &AttemptLimits,
) -> Result<Response<Bytes>, Failure> {
    let (head, body) = response.into_parts();
    let is_error = !head.status.is_success();
    let max = if is_error { limits.max_bytes.min(MAX_ERROR_BODY) } else { limits.max_bytes };
    let body = match body {
        PendingBody::Whole(body) => Ok(body),
        PendingBody::Stream(mut response) => read_stream(&mut response, max, limits).await,
    };
    let body = match body {
        Ok(body) if body.len() <= max => body,
        // The status says what matters: an error whose body is cut is an error all the same.
        Ok(body) if is_error => body.slice(..max),
        Err(_) if is_error => Bytes::new(),
        Ok(_) => return Err(too_large(max, head.status)),
        Err(failure) => return Err(failure),
    };
    Ok(Response::from_parts(head, body))
}

fn too_large(limit: usize, status: StatusCode) -> Failure {
    Failure::BodyTooLarge { limit, status: Some(status) }
}

/// Reads a body, or a little more than `max` bytes of it.
async fn read_stream(
    response: &mut reqwest::Response,
    max: usize,
    limits: &AttemptLimits,
) -> Result<Bytes, Failure> {
    let Some(first) = chunk(response, limits).await? else { return Ok(Bytes::new()) };
    if first.len() > max {
        return Ok(first);
    }
    let Some(mut next) = chunk(response, limits).await? else {
        // The usual case: one chunk, which is not copied.
        return Ok(first);
    };
    let mut whole = BytesMut::from(first);
    loop {
        let room = max.saturating_add(1).saturating_sub(whole.len());
        whole.extend_from_slice(&next[..next.len().min(room)]);
        if whole.len() > max {
            break;
        }
        match chunk(response, limits).await? {
            Some(chunk) => next = chunk,
            None => break,
        }
    }
    Ok(whole.freeze())
}

async fn chunk(
    response: &mut reqwest::Response,
    limits: &AttemptLimits,
) -> Result<Option<Bytes>, Failure> {
    let read_end = clock::after(clock::now(), limits.read_timeout);
    let read = timeout_at(read_end.min(limits.deadline), response.chunk()).await;
    match read {
        Ok(chunk) => chunk.map_err(|error| Failure::Interrupted(error.without_url().into())),
        Err(_) if read_end < limits.deadline => Err(Failure::Timeout {
            limit: TimeoutKind::Read,
            after: limits.read_timeout,
            sent: true,
        }),
        Err(_) => Err(limits.timed_out(true)),
    }
}

/// The body of a request, which notes when a connection begins to write the request: it asks then
/// whether there is a body. Before that, nothing can have reached the service.
struct OutgoingBody {
    data: Bytes,
    writing: Arc<AtomicBool>,
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
        self.writing.store(true, Ordering::Release);
        self.data.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.len() as u64)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("base", &self.base).finish_non_exhaustive()
    }
}
