//! Any request, for what the specification does not show.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::call::Call;
use crate::call::{CallFuture, Core, Request, additional_header};
use crate::client::Client;
use crate::error::Error;
use crate::options::{RequestOptions, option_setters};
use crate::paging::{Pages, body_digest};
use crate::redact::printable;
use crate::response::Response;

/// Any request, from [`Client::request`].
///
/// It is authorized, rate limited, retried and judged like every other: a response that is no
/// success is an [`Error`]. Retries follow the method: those that RFC 9110, section 9.2.2, calls
/// idempotent may be sent again; [`idempotent`](Self::idempotent) says otherwise.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// use petstore_client::{Method, Pet};
///
/// let pets = client.request(Method::GET, "/pets").query("limit", 5).decode::<Vec<Pet>>().await?;
/// println!("{} pets", pets.len());
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
        let (core, options) = self.parts();
        let operation = operation(&method, path);
        let request = match core.base.relative(path) {
            Ok(url) => Ok(Request::new(operation, method, url)),
            Err(problem) => Err(Error::invalid(problem).with_operation(operation)),
        };
        RawRequest { core, request, options }
    }

    /// Sends a finished request, such as one from [`RawRequest::build`]. Its address is a whole one,
    /// of the base URL's origin.
    ///
    /// # Errors
    ///
    /// The future fails where the request cannot be sent, and with whatever else ends a call.
    pub fn execute(&self, request: http::Request<Bytes>) -> CallFuture<Bytes> {
        let (core, options) = self.parts();
        let (parts, body) = request.into_parts();
        let operation = operation(&parts.method, parts.uri.path());
        let request = match Url::parse(&parts.uri.to_string()) {
            Ok(url) => Ok(Request::new(operation, parts.method, url)),
            Err(_) => {
                let problem = "its address is not a whole URL of the base URL's origin";
                Err(Error::invalid(problem).with_operation(operation))
            }
        };
        let raw = RawRequest { core, request, options };
        let names = parts.headers.iter();
        let raw = names.fold(raw, |raw, (name, value)| raw.header(name, value.clone()));
        CallFuture::new(raw.core, raw.request.map(|request| request.with_body(body)), options, Ok)
    }
}

impl RawRequest {
    fn try_map(mut self, change: impl FnOnce(&mut Request) -> Result<(), Error>) -> Self {
        if let Ok(request) = &mut self.request
            && let Err(error) = change(request)
        {
            self.request = Err(error.with_operation(request.operation.clone()));
        }
        self
    }

    /// Adds a query parameter.
    pub fn query(self, name: &str, value: impl fmt::Display) -> Self {
        self.queries([(name, value)])
    }

    /// Adds query parameters.
    pub fn queries<K: AsRef<str>, V: fmt::Display>(
        self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.try_map(|request| {
            for (name, value) in pairs {
                let value = value.to_string();
                request.http.url.query_pairs_mut().append_pair(name.as_ref(), &value);
            }
            Ok(())
        })
    }

    /// Adds a header. `Authorization`, `Host` and those that frame the message on its connection
    /// are the client's own.
    pub fn header<V: TryInto<HeaderValue>>(self, name: impl AsRef<str>, value: V) -> Self {
        self.try_map(|request| {
            let (name, value) = additional_header(name.as_ref(), value).map_err(Error::invalid)?;
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

    /// Declares whether sending the request twice does no more than sending it once: then it is sent
    /// again where its first response was lost. By default the method says so.
    ///
    /// ```
    /// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
    /// use petstore_client::Method;
    ///
    /// let order = client.request(Method::POST, "/store/orders").json(&[1]);
    /// order.header("Idempotency-Key", "8e03978e").idempotent(true).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn idempotent(self, idempotent: bool) -> Self {
        self.try_map(|request| {
            request.idempotent = idempotent;
            Ok(())
        })
    }

    /// Names the operation in events, spans and errors; by default it is method and path.
    pub fn operation(self, name: impl Into<String>) -> Self {
        self.try_map(|request| {
            request.operation = name.into().into();
            Ok(())
        })
    }

    option_setters!(options);

    /// Returns the request as a call whose response is read as JSON.
    pub fn decode<T: DeserializeOwned>(self) -> Call<T> {
        Call::new((self.core, self.options), self.request)
    }

    /// Sends the request.
    ///
    /// # Errors
    ///
    /// The future fails where the path or a header cannot be sent, and with whatever else ends a
    /// call.
    pub fn send(self) -> CallFuture<Bytes> {
        CallFuture::new(self.core, self.request, self.options, Ok)
    }

    /// Asks for one page after the other, as long as the service offers a next one
    /// (`Link: …; rel="next"`, RFC 8288) on the same origin.
    pub fn pages(self) -> Pages<Bytes> {
        Pages::new(self.core, self.request, self.options, (Ok, body_digest))
    }

    /// Returns the request as it would be sent, without `Authorization`.
    ///
    /// # Errors
    ///
    /// Where the path leads out of the base URL, or a header cannot be sent.
    pub fn build(self) -> Result<http::Request<Bytes>, Error> {
        self.core.built(&self.request?)
    }
}

/// Returns a request's name, without the query: that may hold anything, and the name is logged.
fn operation(method: &Method, path: &str) -> String {
    let bare = path.split('?').next().unwrap_or_default();
    format!("{method} {}", printable(bare, 100))
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
