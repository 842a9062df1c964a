//! Raw requests, for operations without a typed method.

use std::fmt;

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::{Call, ResponseFuture};
use crate::client::Client;
use crate::error::Error;
use crate::options::{RequestOptions, option_setters};
use crate::request::Request;
use crate::response::Response;
use crate::wire::redact::printable;

/// Any request, from [`Client::request`].
///
/// It is authorized, rate limited and retried like any operation. Responses other than a success
/// are an [`Error`]. The client retries requests with an idempotent method (RFC 9110, section
/// 9.2.2); [`idempotent`](Self::idempotent) changes that. Await it for the status and the bytes of the
/// body, or [`decode`](Self::decode) it.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// use petstore_client::{Pet, http::Method};
///
/// let pets = client.request(Method::GET, "/pets").query("limit", 5).decode::<Vec<Pet>>().await?;
/// let response = client.request(Method::GET, "/store/orders").await?;
/// println!("{} pets; HTTP {}: {}", pets.len(), response.status(), response.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is awaited"]
pub struct RawRequest(Call<Bytes>);

impl Client {
    /// Creates any request. The path is relative to the base URL, and may contain a query.
    pub fn request(&self, method: Method, path: &str) -> RawRequest {
        let operation = operation(&method, path);
        let request = match self.core.base.relative(path) {
            Ok(url) => Ok(Request::new(operation, method, url)),
            Err(problem) => Err(Error::invalid(problem).with_operation(operation)),
        };
        RawRequest(Call {
            client: self.clone(),
            request,
            decode: Ok,
        })
    }
}

impl RawRequest {
    option_setters!();

    fn options_mut(&mut self) -> &mut RequestOptions {
        self.0.options_mut()
    }

    fn try_map(self, change: impl FnOnce(&mut Request) -> Result<(), Error>) -> Self {
        Self(self.0.try_map(change))
    }

    /// Adds a header to all attempts. `Content-Type` replaces that of the body. The client sets
    /// `Authorization`, `Host`, `Connection` and the headers for the body's length, and refuses them
    /// here.
    pub fn header<V: TryInto<HeaderValue>>(self, name: impl AsRef<str>, value: V) -> Self {
        Self(self.0.header(name, value))
    }

    /// Adds a query parameter.
    pub fn query(self, name: &str, value: impl fmt::Display) -> Self {
        self.try_map(|request| {
            let mut query = request.url.query_pairs_mut();
            query.append_pair(name, &value.to_string());
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
    /// use petstore_client::http::Method;
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

    /// Turns the request into a call that decodes its response from JSON.
    pub fn decode<T: DeserializeOwned>(self) -> Call<T> {
        Call::new(self.0.client, self.0.request)
    }

    /// Returns the request that would be sent, without `Authorization`.
    ///
    /// # Errors
    ///
    /// Fails if the request is invalid.
    pub fn build(self) -> Result<http::Request<Bytes>, Error> {
        self.0.build()
    }

    /// Sends the request. Awaiting it does the same. For functions that take a future, such as
    /// `tokio::spawn`.
    ///
    /// # Errors
    ///
    /// The future fails if the call fails; see [`Error`].
    pub fn send(self) -> ResponseFuture<Bytes> {
        self.0.with_meta()
    }
}

impl IntoFuture for RawRequest {
    type Output = Result<Response<Bytes>, Error>;
    type IntoFuture = ResponseFuture<Bytes>;

    fn into_future(self) -> ResponseFuture<Bytes> {
        self.send()
    }
}

/// Returns a request's name, without the query, which may be secret: the name is logged.
fn operation(method: &Method, path: &str) -> String {
    let bare = path.split('?').next().unwrap_or_default();
    format!("{method} {}", printable(bare, 100))
}
