//! Makes one attempt, and knows no policy: no retry, no rate limit, no redirect.

use std::convert::Infallible;
use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::{io, iter};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::base_url::same_origin;

/// How much of the body of a response that is no success is read.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// A request without its credential.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// The body, empty where there is none; its content type is among the headers.
    pub(crate) body: Bytes,
}

/// A whole response, whatever its status. The body of one that is no success may be cut.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A response whose head has come; its body may still be on the way.
#[derive(Debug)]
pub(crate) struct PendingResponse(reqwest::Response);

/// An attempt without a whole response.
#[derive(Debug)]
pub(crate) enum TransportError {
    /// The request cannot be sent.
    Invalid(String),
    Connect(reqwest::Error),
    ConnectTimeout,
    Tls(reqwest::Error),
    Interrupted(reqwest::Error),
    /// The attempt's deadline has passed.
    Deadline {
        connecting: bool,
    },
    BodyTooLarge {
        limit: usize,
        status: StatusCode,
    },
}

impl TransportError {
    /// Returns whether the request cannot have reached the service.
    pub(crate) fn not_sent(&self) -> bool {
        match self {
            Self::Invalid(_) | Self::Connect(_) | Self::ConnectTimeout | Self::Tls(_) => true,
            Self::Deadline { connecting } => *connecting,
            Self::Interrupted(_) | Self::BodyTooLarge { .. } => false,
        }
    }
}

/// Sends requests, to one origin only.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    http: reqwest::Client,
    base: Url,
}

impl HttpTransport {
    pub(crate) fn new(http: reqwest::ClientBuilder, base: Url) -> Result<Self, reqwest::Error> {
        let http = http
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connection_verbose(false)
            .referer(false)
            .build()?;
        Ok(Self { http, base })
    }

    pub(crate) async fn send(
        &self,
        request: &HttpRequest,
        authorization: HeaderValue,
        deadline: Instant,
    ) -> Result<PendingResponse, TransportError> {
        // The last guard before the key leaves: whatever built the request, it goes home only.
        if !same_origin(&request.url, &self.base) {
            let problem = "it leads to another origin than the base URL's";
            return Err(TransportError::Invalid(problem.to_owned()));
        }
        let mut outgoing = reqwest::Request::new(request.method.clone(), request.url.clone());
        let headers = outgoing.headers_mut();
        headers.clone_from(&request.headers);
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        headers.insert(header::AUTHORIZATION, authorization);
        let writing = Arc::new(AtomicBool::new(false));
        let body = OutgoingBody { data: request.body.clone(), writing: Arc::clone(&writing) };
        *outgoing.body_mut() = Some(reqwest::Body::wrap(body));
        match timeout_at(deadline, self.http.execute(outgoing)).await {
            Ok(Ok(response)) => Ok(PendingResponse(response)),
            Ok(Err(error)) => Err(classify(error)),
            Err(_) => {
                // The request is given up. A connection that took it just before notes it now.
                tokio::task::yield_now().await;
                Err(TransportError::Deadline { connecting: !writing.load(Ordering::Acquire) })
            }
        }
    }
}

fn classify(error: reqwest::Error) -> TransportError {
    let error = error.without_url();
    if error.is_builder() {
        TransportError::Invalid(error.to_string())
    } else if !error.is_connect() {
        TransportError::Interrupted(error)
    } else if error.is_timeout() {
        TransportError::ConnectTimeout
    } else if is_handshake(&error) {
        TransportError::Tls(error)
    } else {
        TransportError::Connect(error)
    }
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

impl PendingResponse {
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Reads the body, up to `limit` bytes of a success, and as much as is useful of an error.
    pub(crate) async fn read(
        self,
        deadline: Instant,
        limit: usize,
    ) -> Result<RawResponse, TransportError> {
        let mut response = self.0;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let limit = if status.is_success() { limit } else { limit.min(MAX_ERROR_BODY) };
        let error = match timeout_at(deadline, body(&mut response, limit)).await {
            Ok(Ok((body, Extent::Whole))) => return Ok(RawResponse { status, headers, body }),
            // The status says what matters: an error whose body is cut is an error all the same.
            Ok(Ok((body, Extent::Cut))) if !status.is_success() => {
                return Ok(RawResponse { status, headers, body });
            }
            _ if !status.is_success() => {
                return Ok(RawResponse { status, headers, body: Bytes::new() });
            }
            Ok(Ok((_, Extent::Cut))) => TransportError::BodyTooLarge { limit, status },
            Ok(Err(error)) => TransportError::Interrupted(error.without_url()),
            Err(_) => TransportError::Deadline { connecting: false },
        };
        Err(error)
    }
}

/// Whether a body was read to its end, or as far as was allowed.
enum Extent {
    Whole,
    Cut,
}

async fn body(response: &mut reqwest::Response, limit: usize) -> reqwest::Result<(Bytes, Extent)> {
    let Some(first) = response.chunk().await? else {
        return Ok((Bytes::new(), Extent::Whole));
    };
    let Some(second) = response.chunk().await? else {
        // The usual case: one chunk, which is not copied.
        return Ok(within(first, limit));
    };
    let mut whole = BytesMut::from(first);
    let mut next = Some(second);
    while let Some(chunk) = next {
        let room = limit.saturating_add(1).saturating_sub(whole.len());
        whole.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if whole.len() > limit {
            break;
        }
        next = response.chunk().await?;
    }
    Ok(within(whole.freeze(), limit))
}

fn within(bytes: Bytes, limit: usize) -> (Bytes, Extent) {
    if bytes.len() > limit { (bytes.slice(..limit), Extent::Cut) } else { (bytes, Extent::Whole) }
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
