//! The trait of a transport, and its errors.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io, iter};

use bytes::Bytes;
use http::{Request, Response};

use crate::error::{BoxError, Error, ErrorKind, TimeoutKind};

/// Sends one request and returns the complete response. Use it for another HTTP client, or for
/// tests without a socket. Implement it with an `async fn`, or see [`transport_fn`]. Its types are
/// those of the crate `http`, version 1.
///
/// The client does everything else: key, rate limits, retries, time limits, decoding. The request
/// has the API key in `Authorization`, so a transport must send it once, only to its URL, and must
/// not follow redirects. A time limit may drop the future at any point.
///
/// ```
/// use petstore_client::{Client, bytes::Bytes};
/// use petstore_client::transport::{Transport, TransportError};
///
/// struct Canned;
///
/// impl Transport for Canned {
///     async fn send(
///         &self,
///         _request: http::Request<Bytes>,
///     ) -> Result<http::Response<Bytes>, TransportError> {
///         Ok(http::Response::new(Bytes::from_static(b"[]")))
///     }
/// }
///
/// # async fn show() -> Result<(), petstore_client::Error> {
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .transport(Canned)
///     .build()?;
/// assert!(client.pets().list().await?.is_empty());
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(show()).unwrap();
/// ```
pub trait Transport: Send + Sync + 'static {
    /// Sends a request. Its extensions contain a [`ResponseLimit`] and a
    /// [`SendMark`](super::SendMark).
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Bytes>, TransportError>> + Send;
}

impl<T: Transport> Transport for Arc<T> {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        (**self).send(request).await
    }
}

/// Turns an async closure into a transport.
///
/// ```
/// use petstore_client::transport::{TransportError, transport_fn};
///
/// let down = transport_fn(|_request| async { Err(TransportError::connect("the network is down")) });
/// # fn is_transport(_: impl petstore_client::transport::Transport) {}
/// # is_transport(down);
/// ```
pub fn transport_fn<F, Fut>(send: F) -> TransportFn<F>
where
    F: Fn(Request<Bytes>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Bytes>, TransportError>> + Send,
{
    TransportFn(send)
}

/// An async closure as a transport, from [`transport_fn`].
#[derive(Debug, Clone)]
pub struct TransportFn<F>(F);

impl<F, Fut> Transport for TransportFn<F>
where
    F: Fn(Request<Bytes>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Bytes>, TransportError>> + Send,
{
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        (self.0)(request).await
    }
}

type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Bytes>, TransportError>> + Send + 'a>>;

/// A transport as an object.
trait DynTransport: Send + Sync {
    fn dyn_send(&self, request: Request<Bytes>) -> ResponseFuture<'_>;
}

impl<T: Transport> DynTransport for T {
    fn dyn_send(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(self.send(request))
    }
}

/// A transport of any type, for programs that choose one at run time. Clones share it.
///
/// ```
/// use petstore_client::transport::{BoxTransport, TransportError, transport_fn};
///
/// let down = transport_fn(|_| async { Err(TransportError::connect("the network is down")) });
/// let transports: Vec<BoxTransport> = vec![BoxTransport::new(down)];
/// # assert_eq!(transports.len(), 1);
/// ```
#[derive(Clone)]
pub struct BoxTransport(Arc<dyn DynTransport>);

impl BoxTransport {
    /// Boxes a transport.
    pub fn new(transport: impl Transport) -> Self {
        Self(Arc::new(transport))
    }
}

impl Transport for BoxTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.0.dyn_send(request).await
    }
}

impl fmt::Debug for BoxTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxTransport")
    }
}

/// The maximum size of the body that the client accepts, in bytes: an extension of the request. A
/// transport that stops reading there saves memory. The client checks the size too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResponseLimit(pub usize);

/// The error of a transport. It says whether the service may have received the request.
///
/// ```
/// use std::io::{Error, ErrorKind};
/// use petstore_client::transport::TransportError;
///
/// /// Converts the error of an HTTP client of the program's own.
/// fn converted(error: Error) -> TransportError {
///     match error.kind() {
///         ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable => TransportError::connect(error),
///         _ => TransportError::interrupted(error),
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{}", summary(*.kind))]
pub struct TransportError {
    kind: ErrorKind,
    /// The time limit of the built-in transport that expired.
    timeout: Option<(TimeoutKind, Duration)>,
    source: Option<BoxError>,
}

impl TransportError {
    fn new(kind: ErrorKind, cause: impl Into<BoxError>) -> Self {
        Self {
            kind,
            timeout: None,
            source: Some(cause.into()),
        }
    }

    /// Creates the error for a connection that could not be opened. The request was not sent.
    pub fn connect(cause: impl Into<BoxError>) -> Self {
        Self::new(ErrorKind::Connect, cause)
    }

    /// Creates the error for a failed TLS handshake. The request was not sent, and is not retried.
    pub fn tls(cause: impl Into<BoxError>) -> Self {
        Self::new(ErrorKind::Tls, cause)
    }

    /// Creates the error for a broken connection, or for any failure after the request was sent.
    /// The service may have processed it.
    pub fn interrupted(cause: impl Into<BoxError>) -> Self {
        Self::new(ErrorKind::Interrupted, cause)
    }

    /// Creates the error for a response that is larger than [`ResponseLimit`].
    #[must_use]
    pub fn body_too_large() -> Self {
        Self {
            kind: ErrorKind::BodyTooLarge,
            timeout: None,
            source: None,
        }
    }

    /// Creates the error for a request that the transport cannot send.
    pub(super) fn invalid(cause: impl Into<BoxError>) -> Self {
        Self::new(ErrorKind::InvalidRequest, cause)
    }

    pub(super) fn connect_timed_out(limit: Duration) -> Self {
        Self::timed_out(TimeoutKind::Connect, limit)
    }

    pub(super) fn read_timed_out(limit: Duration) -> Self {
        Self::timed_out(TimeoutKind::Read, limit)
    }

    fn timed_out(kind: TimeoutKind, limit: Duration) -> Self {
        Self {
            kind: ErrorKind::Timeout,
            timeout: Some((kind, limit)),
            source: None,
        }
    }

    /// Returns whether the system refused to open another socket.
    fn is_out_of_files(&self) -> bool {
        let first = self.source.as_deref();
        let first = first.map(|source| source as &(dyn std::error::Error + 'static));
        iter::successors(first, |cause| cause.source())
            .any(|cause| cause.downcast_ref().is_some_and(is_out_of_files))
    }

    /// Converts it to the error of a call to `origin` with this size limit.
    pub(super) fn into_error(self, origin: &str, max_bytes: usize) -> Error {
        if let Some((kind, limit)) = self.timeout {
            return Error::timed_out(kind, limit, kind != TimeoutKind::Connect);
        }
        if let (ErrorKind::InvalidRequest, Some(source)) = (self.kind, &self.source) {
            return Error::invalid(source);
        }
        let message = match self.kind {
            ErrorKind::Connect if self.is_out_of_files() => format!(
                "no connection to {origin}: too many open files; raise the limit of the process, \
                 or lower `max_in_flight`"
            ),
            ErrorKind::Connect => format!(
                "no connection to {origin}; check the base URL, the network, and that the service \
                 runs"
            ),
            ErrorKind::Tls => format!(
                "no secure connection to {origin}: untrusted certificate, or not a TLS server; \
                 check the base URL, or trust its certificate authority"
            ),
            ErrorKind::BodyTooLarge => {
                format!("the response is larger than {max_bytes} bytes")
            }
            _ => {
                let problem = "the response is incomplete: the connection broke, or the server does not speak HTTP";
                problem.to_owned()
            }
        };
        let mut error = Error::new(self.kind, message);
        if self.kind == ErrorKind::Interrupted {
            error = error.with_repeat_advice("check the base URL, or try again later");
        }
        match self.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}

/// The numbers of the system's errors for too many open files, in the process and in the system.
const TOO_MANY_FILES: &[i32] = if cfg!(windows) { &[10_024] } else { &[24, 23] };

/// Also searches wrapped I/O errors, which `source` does not return.
fn is_out_of_files(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(number) => TOO_MANY_FILES.contains(&number),
        None => error
            .get_ref()
            .and_then(|inner| inner.downcast_ref())
            .is_some_and(is_out_of_files),
    }
}

/// Returns a short description. The error of the call says more.
fn summary(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "no connection",
        ErrorKind::Tls => "the TLS handshake failed",
        ErrorKind::BodyTooLarge => "the response is too large",
        ErrorKind::Timeout => "a time limit expired",
        ErrorKind::InvalidRequest => "the request is invalid",
        _ => "the connection broke",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_named_as_the_cause() {
        let number = TOO_MANY_FILES[0];
        let plain = io::Error::from_raw_os_error(number);
        let wrapped = io::Error::other(io::Error::from_raw_os_error(number));
        for cause in [plain, wrapped] {
            let error = TransportError::connect(cause).into_error("http://pets.example", 0);
            assert_eq!(
                error.to_string(),
                "no connection to http://pets.example: too many open files; raise the limit of the \
                 process, or lower `max_in_flight`"
            );
        }
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = TransportError::connect(refused).into_error("http://pets.example", 0);
        assert!(error.to_string().contains("check the base URL"), "{error}");
    }
}
