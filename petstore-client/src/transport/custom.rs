//! The seam: what sends one request, and why it could not.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};

use crate::error::{BoxError, Failure};

/// Sends one request and returns the whole response: for an HTTP client of the program's own, or for
/// tests without a socket. Implement it with an `async fn`, or see [`transport_fn`].
///
/// The client adds everything else: the key, rate limits, retries, time limits, decoding. So a
/// transport must send each request once, follow no redirect, and send it nowhere else than its
/// address says: the request carries the API key in `Authorization`. The future may be dropped at any
/// point, where a time limit ends the attempt.
///
/// ```
/// use petstore_client::{Bytes, Client};
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
    /// Sends a request. A [`ResponseLimit`] is among its extensions.
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Bytes>, TransportError>> + Send;
}

impl<T: Transport> Transport for Arc<T> {
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Bytes>, TransportError>> + Send {
        (**self).send(request)
    }
}

/// Makes a transport of an async closure.
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
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> impl Future<Output = Result<Response<Bytes>, TransportError>> + Send {
        (self.0)(request)
    }
}

type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Bytes>, TransportError>> + Send + 'a>>;

/// A transport of any type.
pub(crate) trait DynTransport: Send + Sync {
    fn dyn_send(&self, request: Request<Bytes>) -> ResponseFuture<'_>;
}

impl<T: Transport> DynTransport for T {
    fn dyn_send(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(self.send(request))
    }
}

/// How many bytes of body the client accepts: an extension of the request. A transport that reads no
/// further saves memory; the client checks it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseLimit(pub usize);

/// Why a transport has no response, and whether the service may have seen the request.
#[derive(Debug)]
pub struct TransportError(pub(super) Failure);

impl TransportError {
    /// Creates the error of a connection that did not come about: the request was not sent.
    pub fn connect(cause: impl Into<BoxError>) -> Self {
        Self(Failure::Connect { origin: String::new(), source: cause.into() })
    }

    /// Creates the error of a failed TLS handshake: the request was not sent, and is not sent again.
    pub fn tls(cause: impl Into<BoxError>) -> Self {
        Self(Failure::Tls { origin: String::new(), source: cause.into() })
    }

    /// Creates the error of a connection that broke, or of anything else that may have happened
    /// after the request was sent: the service may have processed it.
    pub fn interrupted(cause: impl Into<BoxError>) -> Self {
        Self(Failure::Interrupted(cause.into()))
    }

    /// Creates the error of a response that is larger than [`ResponseLimit`].
    #[must_use]
    pub fn body_too_large() -> Self {
        Self(Failure::BodyTooLarge { limit: 0, status: None })
    }

    /// Returns the failure of a call to an origin, with a limit for the size of its response.
    pub(super) fn into_failure(self, origin: impl FnOnce() -> String, max_bytes: usize) -> Failure {
        let mut failure = self.0;
        match &mut failure {
            Failure::Connect { origin: unset, .. } | Failure::Tls { origin: unset, .. } => {
                *unset = origin();
            }
            Failure::BodyTooLarge { limit, .. } => *limit = max_bytes,
            _ => {}
        }
        failure
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Failure::Connect { .. } => "no connection",
            Failure::Tls { .. } => "the TLS handshake failed",
            Failure::BodyTooLarge { .. } => "the response is too large",
            _ => "the connection broke",
        })
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}
