//! The transports of the tests: the built-in one, and wrappers that keep or lose the mark that says
//! whether a request was sent.

#![cfg(target_os = "linux")]

use http::{Request, Response};
use petstore_client::ClientBuilder;
use petstore_client::bytes::Bytes;
use petstore_client::transport::{Builtin, Transport, TransportError};

/// The transport of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Builtin,
    /// A transport that hands requests on to the built-in one.
    Wrapped,
    /// A transport that hands requests on to the built-in one without their mark.
    WrappedUnmarked,
}

pub(super) const ROUTES: &[Route] = &[Route::Builtin, Route::Wrapped, Route::WrappedUnmarked];

impl Route {
    pub(super) fn apply(self, builder: ClientBuilder) -> ClientBuilder {
        let removes_mark = match self {
            Self::Builtin => return builder,
            Self::Wrapped => false,
            Self::WrappedUnmarked => true,
        };
        builder.wrap_transport(move |builtin| Wrapper {
            builtin,
            removes_mark,
        })
    }
}

struct Wrapper {
    builtin: Builtin,
    removes_mark: bool,
}

impl Transport for Wrapper {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        if !self.removes_mark {
            return self.builtin.send(request).await;
        }
        let (head, body) = request.into_parts();
        let mut other = Request::new(body);
        *other.method_mut() = head.method;
        *other.uri_mut() = head.uri;
        *other.headers_mut() = head.headers;
        self.builtin.send(other).await
    }
}
