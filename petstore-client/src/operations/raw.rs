//! Raw requests, for what the specification does not describe.

use std::fmt;

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::call::{Call, CallFuture};
use super::pages::{Pages, body_digest};
use crate::client::Client;
use crate::error::Error;
use crate::redact::printable;
use crate::request::{Request, additional_header};

/// Any request, from [`Client::request`].
///
/// It is authorized, rate limited and retried as an operation is; a response that is not a success is
/// an [`Error`]. Requests with a method that RFC 9110, section 9.2.2, calls idempotent may be sent
/// again; [`idempotent`](Self::idempotent) changes that.
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
pub type RawRequest = Call<Bytes>;

impl Client {
    /// Prepares any request. The path is relative to the base URL; it may hold a query.
    pub fn request(&self, method: Method, path: &str) -> RawRequest {
        let operation = operation(&method, path);
        let request = match self.core.base.relative(path) {
            Ok(url) => Ok(Request::new(operation, method, url)),
            Err(problem) => Err(Error::invalid(problem).with_operation(operation)),
        };
        Call { client: self.clone(), request, decode: Ok }
    }

    /// Sends a finished request, such as one from [`RawRequest::build`]. Its address is a whole URL of
    /// the base URL's origin.
    ///
    /// # Errors
    ///
    /// The future fails where the request cannot be sent, or where the call fails.
    pub fn execute(&self, request: http::Request<Bytes>) -> CallFuture<Bytes> {
        let (head, body) = request.into_parts();
        let operation = operation(&head.method, head.uri.path());
        let request = match Url::parse(&head.uri.to_string()) {
            Ok(url) => Ok(Request { body, ..Request::new(operation, head.method, url) }),
            Err(_) => {
                let problem = "its address is not a whole URL of the base URL's origin";
                Err(Error::invalid(problem).with_operation(operation))
            }
        };
        let raw = Call { client: self.clone(), request, decode: Ok };
        let headers = head.headers.iter();
        headers.fold(raw, |raw, (name, value)| raw.header(name, value.clone())).send()
    }
}

impl Call<Bytes> {
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
                request.url.query_pairs_mut().append_pair(name.as_ref(), &value);
            }
            Ok(())
        })
    }

    /// Adds a header. `Authorization`, `Host`, `Connection` and those of the body's length are refused:
    /// the client sets them.
    pub fn header<V: TryInto<HeaderValue>>(self, name: impl AsRef<str>, value: V) -> Self {
        self.try_map(|request| {
            let (name, value) = additional_header(name.as_ref(), value).map_err(Error::invalid)?;
            request.headers.append(name, value);
            Ok(())
        })
    }

    /// Sets the body, and its content type where no header sets it.
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

    /// Declares whether sending the request twice has the same effect as sending it once: then it is
    /// sent again where its first response was lost. The default depends on the method.
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

    /// Returns the request as a call whose response is read as JSON.
    pub fn decode<T: DeserializeOwned>(self) -> Call<T> {
        Call::new(self.client, self.request)
    }

    /// Requests page after page, as long as the service offers a next one (`Link: …; rel="next"`, RFC
    /// 8288) on the same origin.
    pub fn pages(self) -> Pages<Bytes> {
        Pages::new(self.client, self.request, Ok, body_digest)
    }
}

/// Returns a request's name, without the query: that may hold anything, and the name is logged.
fn operation(method: &Method, path: &str) -> String {
    let bare = path.split('?').next().unwrap_or_default();
    format!("{method} {}", printable(bare, 100))
}
