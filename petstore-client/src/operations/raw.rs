//! Raw requests, for operations without a typed method.

use std::fmt;

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::call::{Call, CallFuture, call_methods};
use super::pages::{Pages, body_digest};
use crate::client::Client;
use crate::error::Error;
use crate::http::redact::printable;
use crate::options::option_setters;
use crate::request::Request;
use crate::response::Response;

/// Any request, from [`Client::request`].
///
/// It is authorized, rate limited and retried like any operation. Responses other than a success
/// are an [`Error`]. The client retries requests with an idempotent method (RFC 9110, section
/// 9.2.2); [`idempotent`](Self::idempotent) changes that.
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
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is awaited"]
pub struct RawRequest(Call<Bytes>);

call_methods!(RawRequest, Bytes);

impl Client {
    /// Creates any request. The path is relative to the base URL, and may contain a query.
    pub fn request(&self, method: Method, path: &str) -> RawRequest {
        let operation = operation(&method, path);
        let request = match self.core.base.relative(path) {
            Ok(url) => Ok(Request::new(operation, method, url)),
            Err(problem) => Err(Error::invalid(problem).with_operation(operation)),
        };
        RawRequest::new(self.clone(), request)
    }

    /// Sends a request, such as one from [`RawRequest::build`]. It needs an absolute URL on the
    /// base URL's origin.
    ///
    /// # Errors
    ///
    /// The future fails if the request is invalid or the call fails.
    pub fn execute(&self, request: http::Request<Bytes>) -> CallFuture<Bytes> {
        let (head, body) = request.into_parts();
        let operation = operation(&head.method, head.uri.path());
        let request = match Url::parse(&head.uri.to_string()) {
            Ok(url) => Ok(Request {
                body,
                ..Request::new(operation, head.method, url)
            }),
            Err(_) => {
                let problem = "its URL must be absolute, on the base URL's origin";
                Err(Error::invalid(problem).with_operation(operation))
            }
        };
        let raw = RawRequest::new(self.clone(), request);
        let headers = head.headers.iter();
        headers
            .fold(raw, |raw, (name, value)| raw.header(name, value.clone()))
            .send()
    }
}

impl RawRequest {
    fn new(client: Client, request: Result<Request, Error>) -> Self {
        Self(Call {
            client,
            request,
            decode: Ok,
        })
    }

    fn try_map(self, change: impl FnOnce(&mut Request) -> Result<(), Error>) -> Self {
        Self(self.0.try_map(change))
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
                request
                    .url
                    .query_pairs_mut()
                    .append_pair(name.as_ref(), &value);
            }
            Ok(())
        })
    }

    /// Sets the body, and its content type unless a header sets that.
    pub fn body(self, content_type: &str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        self.try_map(|request| {
            let kind = HeaderValue::try_from(content_type)
                .map_err(|_| Error::invalid("the content type cannot be written into a header"))?;
            request.headers.entry(header::CONTENT_TYPE).or_insert(kind);
            request.body = body;
            Ok(())
        })
    }

    /// Sets a JSON body.
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => self.body("application/json", body),
            Err(problem) => self.try_map(|_| Err(Error::invalid(problem))),
        }
    }

    /// Declares whether sending the request twice has the same effect as sending it once. If so,
    /// the client retries it after a lost response. The default depends on the method.
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

    /// Sets the operation's name in events, spans and errors. The default is the method and path.
    pub fn operation(self, name: impl Into<String>) -> Self {
        self.try_map(|request| {
            request.operation = name.into().into();
            Ok(())
        })
    }

    /// Turns the request into a call that decodes its response from JSON.
    pub fn decode<T: DeserializeOwned>(self) -> Call<T> {
        Call::new(self.0.client, self.0.request)
    }

    /// Returns all pages as a stream. Follows `Link: …; rel="next"` (RFC 8288) on the same origin.
    pub fn pages(self) -> Pages<Bytes> {
        Pages::new(self.0, body_digest)
    }
}

/// Returns a request's name, without the query, which may be secret: the name is logged.
fn operation(method: &Method, path: &str) -> String {
    let bare = path.split('?').next().unwrap_or_default();
    format!("{method} {}", printable(bare, 100))
}
