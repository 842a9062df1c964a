//! The built-in transport: an HTTP client with a connection pool.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method};
use http_body::{Body, Frame, SizeHint};
use tokio::time::timeout;
use url::Url;

use super::cause;
use super::custom::{ResponseLimit, Transport, TransportError};
use super::mark::SendMark;
use crate::options::{DEFAULT_MAX_RESPONSE_BYTES, DEFAULT_READ_TIMEOUT};

/// The built-in transport, for [`ClientBuilder::wrap_transport`](crate::ClientBuilder::wrap_transport).
///
/// It sends each request once, to its URL, and follows no redirects. Clones share their connections.
///
/// A wrapper that answers a request itself, such as a cache, must [take the mark](super::SendMark) of the
/// request. Otherwise the answer counts against the quotas, and its old headers count as new ones. The
/// example `cache` shows one.
///
/// ```
/// use petstore_client::{Client, bytes::Bytes};
/// use petstore_client::transport::{Builtin, Transport, TransportError};
///
/// struct Recorder {
///     builtin: Builtin,
/// }
///
/// impl Transport for Recorder {
///     async fn send(
///         &self,
///         request: http::Request<Bytes>,
///     ) -> Result<http::Response<Bytes>, TransportError> {
///         println!("{} {}", request.method(), request.uri());
///         self.builtin.send(request).await
///     }
/// }
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .wrap_transport(|builtin| Recorder { builtin })
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[derive(Clone)]
pub struct Builtin {
    http: reqwest::Client,
    connect_timeout: Duration,
}

/// The time limit between two reads of a body: an extension of the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadTimeout(pub(super) Duration);

impl Builtin {
    pub(super) fn new(http: reqwest::Client, connect_timeout: Duration) -> Self {
        Self {
            http,
            connect_timeout,
        }
    }

    /// Sends a request. Marks it before the service can receive it. Returns when the head of the
    /// response has arrived.
    pub(super) async fn start(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        data: Bytes,
        mark: SendMark,
    ) -> Result<reqwest::Response, TransportError> {
        let mut request = reqwest::Request::new(method, url);
        *request.headers_mut() = headers;
        *request.body_mut() = Some(reqwest::Body::wrap(OutgoingBody { data, mark }));
        match self.http.execute(request).await {
            Ok(response) => Ok(response),
            Err(error) => Err(self.error(error.without_url())),
        }
    }

    fn error(&self, error: reqwest::Error) -> TransportError {
        if error.is_builder() {
            TransportError::invalid(error)
        } else if !error.is_connect() {
            TransportError::interrupted(error)
        } else if error.is_timeout() {
            TransportError::connect_timed_out(self.connect_timeout)
        } else if cause::of_handshake(&error).is_some() {
            TransportError::tls(error)
        } else {
            TransportError::connect(error)
        }
    }
}

impl Transport for Builtin {
    async fn send(
        &self,
        mut request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let mark = SendMark::take(&mut request);
        let (head, body) = request.into_parts();
        let extensions = &head.extensions;
        let max = match extensions.get() {
            Some(ResponseLimit(max)) => *max,
            None => DEFAULT_MAX_RESPONSE_BYTES,
        };
        let read_timeout = match extensions.get() {
            Some(ReadTimeout(limit)) => *limit,
            None => DEFAULT_READ_TIMEOUT,
        };
        let url = Url::parse(&head.uri.to_string()).map_err(TransportError::invalid)?;
        let mut response = self
            .start(head.method, url, head.headers, body, mark)
            .await?;
        let body = match read_body(&mut response, max, read_timeout).await {
            Ok(body) => body,
            // The status of an error matters more than the end of its body.
            Err(_) if !response.status().is_success() => Bytes::new(),
            Err(error) => return Err(error),
        };
        let mut whole = http::Response::new(body);
        *whole.status_mut() = response.status();
        *whole.version_mut() = response.version();
        *whole.headers_mut() = std::mem::take(response.headers_mut());
        Ok(whole)
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builtin").finish_non_exhaustive()
    }
}

/// Reads a body, or slightly more than `max` bytes of it.
pub(super) async fn read_body(
    response: &mut reqwest::Response,
    max: usize,
    read_timeout: Duration,
) -> Result<Bytes, TransportError> {
    let mut body = Bytes::new();
    while body.len() <= max {
        let chunk = match timeout(read_timeout, response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Err(TransportError::interrupted(error.without_url())),
            Err(_) => return Err(TransportError::read_timed_out(read_timeout)),
        };
        let Some(chunk) = chunk else { break };
        if body.is_empty() {
            // The usual case: a single chunk, which is not copied.
            body = chunk;
        } else {
            let mut longer = BytesMut::from(body);
            longer.extend_from_slice(&chunk);
            body = longer.freeze();
        }
    }
    Ok(body)
}

/// The body of a request. It records when a connection starts to write the request, because the
/// connection calls `is_end_stream` first. Before that, nothing can have reached the service.
///
/// If the attempt has already ended, the body claims to have more data and then fails, so the
/// connection closes before it has written anything.
struct OutgoingBody {
    data: Bytes,
    mark: SendMark,
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = AttemptEnded;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AttemptEnded>>> {
        if !self.mark.try_send() {
            return Poll::Ready(Some(Err(AttemptEnded)));
        }
        let data = std::mem::take(&mut self.data);
        Poll::Ready((!data.is_empty()).then(|| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.mark.try_send() && self.data.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.mark.is_revoked() {
            return SizeHint::default();
        }
        SizeHint::with_exact(self.data.len() as u64)
    }
}

/// The attempt ended before its request was sent.
#[derive(Debug, thiserror::Error)]
#[error("the attempt has ended")]
struct AttemptEnded;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    /// Returns the bytes that a server receives if the attempt ends before the request is sent.
    async fn received(method: Method, data: &'static str) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/pets", listener.local_addr().unwrap());
        let builtin = Builtin::new(reqwest::Client::new(), Duration::from_secs(10));
        let mark = SendMark::not_sent();
        assert!(!mark.revoke());
        let sending = builtin.start(
            method,
            url.parse().unwrap(),
            HeaderMap::new(),
            Bytes::from_static(data.as_bytes()),
            mark.clone(),
        );
        let receiving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut received = vec![0; 1_000];
            let length = stream.read(&mut received).await.unwrap();
            received.truncate(length);
            received
        };
        let (sent, received) = tokio::join!(sending, receiving);
        assert!(sent.is_err());
        assert!(!mark.may_be_sent());
        received
    }

    #[tokio::test]
    async fn a_request_whose_attempt_has_ended_does_not_leave() {
        for (method, data) in [(Method::POST, r#"{"name":"Rex"}"#), (Method::DELETE, "")] {
            let received = received(method.clone(), data).await;
            assert_eq!(String::from_utf8_lossy(&received), "", "{method}");
        }
    }

    #[test]
    fn an_attempt_that_ends_after_its_request_was_sent_says_so() {
        let body = OutgoingBody {
            data: Bytes::from_static(b"{}"),
            mark: SendMark::not_sent(),
        };
        assert!(!body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(2));
        assert!(body.mark.revoke());
        assert_eq!(body.size_hint().exact(), Some(2), "sent completely");
    }
}
