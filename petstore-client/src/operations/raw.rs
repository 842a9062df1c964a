//! Any request, for what the specification does not show.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};
use serde::Serialize;

use crate::call::{CallFuture, Core, Request};
use crate::client::Client;
use crate::error::Error;
use crate::options::{RequestOptions, option_setters};
use crate::redact::printable;
use crate::response::Response;

/// Headers that the client sets itself: a second `Authorization` or `Host` would misdirect the key,
/// and a wrong length would break the connection for the request after this one.
const RESERVED: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
];

/// Any request, from [`Client::request`].
///
/// It is authorized, rate limited, retried and judged like every other: a response that is no
/// success is an [`Error`]. Retries follow the method: those that RFC 9110, section 9.2.2, calls
/// idempotent may be sent again.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// use petstore_client::Method;
///
/// let answer = client.request(Method::GET, "/pets").query("limit", "5").send().await?;
/// let pets: Vec<petstore_client::Pet> = answer.json()?;
/// # let _ = pets;
/// # Ok(())
/// # }
/// ```
#[must_use = "a request does nothing until it is sent"]
pub struct RawRequest {
    core: Arc<Core>,
    request: Result<Request, Error>,
    options: RequestOptions,
}

impl Client {
    /// Prepares any request. The path is relative to the base URL; it may hold a query.
    pub fn request(&self, method: Method, path: &str) -> RawRequest {
        RawRequest::new(self.parts(), method, path)
    }
}

impl RawRequest {
    fn new((core, options): (Arc<Core>, RequestOptions), method: Method, path: &str) -> Self {
        // Without the query: the name is shown and logged, and a query may hold anything.
        let bare = path.split('?').next().unwrap_or_default();
        let operation = format!("{method} {}", printable(bare, 100));
        let request = match core.base.relative(path) {
            Ok(url) => Ok(Request::new(operation, method, url)),
            Err(problem) => Err(Error::invalid(problem).with_operation(operation)),
        };
        Self { core, request, options }
    }

    fn try_map(mut self, change: impl FnOnce(&mut Request) -> Result<(), Error>) -> Self {
        if let Ok(request) = &mut self.request
            && let Err(error) = change(request)
        {
            self.request = Err(error.with_operation(request.operation.clone()));
        }
        self
    }

    /// Adds a query parameter.
    pub fn query(self, name: &str, value: &str) -> Self {
        self.try_map(|request| {
            request.http.url.query_pairs_mut().append_pair(name, value);
            Ok(())
        })
    }

    /// Adds a header. `Authorization`, `Host` and those that frame the message on its connection
    /// are the client's own.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.try_map(|request| {
            let shown = printable(name, 60);
            let name = HeaderName::try_from(name)
                .map_err(|_| Error::invalid(format!("`{shown}` is not a valid header name")))?;
            if RESERVED.contains(&name) {
                return Err(Error::invalid(format!("the client sets the header `{name}` itself")));
            }
            let value = HeaderValue::try_from(value).map_err(|_| {
                Error::invalid(format!("the header `{name}` cannot hold its value"))
            })?;
            request.http.headers.append(name, value);
            Ok(())
        })
    }

    /// Sets the body, and its content type where no header sets it.
    pub fn body(self, content_type: &str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        self.try_map(|request| {
            let kind = HeaderValue::try_from(content_type)
                .map_err(|_| Error::invalid("the content type cannot be written into a header"))?;
            request.http.headers.entry(header::CONTENT_TYPE).or_insert(kind);
            request.http.body = body;
            Ok(())
        })
    }

    /// Sets a JSON body.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => self.body("application/json", body),
            Err(problem) => self.try_map(|_| Err(Error::invalid(problem.to_string()))),
        }
    }

    option_setters!(options);

    /// Sends the request.
    ///
    /// # Errors
    ///
    /// The future fails where the path or a header cannot be sent, and with whatever else ends a
    /// call.
    pub fn send(self) -> CallFuture<Bytes> {
        CallFuture::new(self.core, self.request, self.options, Ok)
    }
}

impl IntoFuture for RawRequest {
    type Output = Result<Response<Bytes>, Error>;
    type IntoFuture = CallFuture<Bytes>;

    fn into_future(self) -> CallFuture<Bytes> {
        self.send()
    }
}

impl fmt::Debug for RawRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRequest").field("request", &self.request).finish_non_exhaustive()
    }
}
