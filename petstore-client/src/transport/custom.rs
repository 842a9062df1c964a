//! The trait of a transport, and its errors.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};

use super::cause;
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

    /// Converts it to the error of a call to `origin` with this size limit.
    pub(super) fn into_error(self, origin: &str, max_bytes: usize) -> Error {
        if let Some((kind, limit)) = self.timeout {
            return Error::timed_out(kind, limit, kind != TimeoutKind::Connect);
        }
        if let (ErrorKind::InvalidRequest, Some(source)) = (self.kind, &self.source) {
            return Error::invalid(source);
        }
        let mut error = match self.kind {
            ErrorKind::Connect => self.no_connection(origin),
            ErrorKind::Tls => self.no_handshake(origin),
            ErrorKind::BodyTooLarge => Error::new(
                self.kind,
                format!("the response is larger than {max_bytes} bytes"),
            ),
            kind => {
                let cause = self.source.as_deref();
                let message = cause.and_then(|cause| cause::of_response(cause));
                let unknown = "the connection broke before the response was complete";
                Error::new(kind, message.unwrap_or(unknown.into()))
                    .with_advice("check the base URL, or try again later")
            }
        };
        if let Some(source) = self.source {
            error = error.with_source(source);
        }
        error
    }

    fn no_connection(&self, origin: &str) -> Error {
        let message = format!("no connection to {origin}");
        let cause = self.source.as_deref();
        if cause.is_some_and(|cause| cause::is_out_of_files(cause)) {
            return Error::new(self.kind, format!("{message}: too many open files"))
                .with_advice("raise the limit of the process, or lower `max_in_flight`");
        }
        let message = match cause.and_then(|cause| cause::of_connection(cause)) {
            Some(reason) => format!("{message}: {reason}"),
            None => message,
        };
        Error::new(self.kind, message)
            .with_advice("check the base URL, the network, and that the service runs")
    }

    fn no_handshake(&self, origin: &str) -> Error {
        let cause = self.source.as_deref();
        let reason = cause.and_then(|cause| cause::of_handshake(cause));
        let unknown = "untrusted certificate, or not a TLS server";
        let reason = reason.unwrap_or(unknown.into());
        Error::new(
            self.kind,
            format!("no secure connection to {origin}: {reason}"),
        )
        .with_advice("check the base URL, or trust its certificate authority")
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
    use std::io;

    use super::*;

    #[test]
    fn too_many_open_files_are_named_as_the_cause() {
        let said = |cause: io::Error| {
            let error = TransportError::connect(cause);
            error.into_error("http://pets.example", 0).to_string()
        };
        assert_eq!(
            said(io::Error::from_raw_os_error(if cfg!(windows) {
                10_024
            } else {
                24
            })),
            "no connection to http://pets.example: too many open files; raise the limit of the \
             process, or lower `max_in_flight`"
        );
        assert_eq!(
            said(io::ErrorKind::ConnectionRefused.into()),
            "no connection to http://pets.example: connection refused; check the base URL, the \
             network, and that the service runs"
        );
    }
}
