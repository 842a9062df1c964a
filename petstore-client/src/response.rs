//! A successful response: a value and its metadata.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

use crate::deprecation::Deprecation;
use crate::error::{CallStats, Error};
use crate::page::next_page;
use crate::request::Request;
use crate::wire::headers::date;
use crate::wire::redact::Redactor;

/// A value that the service returned, with its metadata. A raw request returns its body as bytes.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// let response = client.pets().list().with_meta().await?;
/// println!("{} pets, HTTP {}", response.value.len(), response.meta.status());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response<T> {
    /// The value.
    pub value: T,
    /// Status, headers and attempts.
    pub meta: Meta,
}

/// The metadata of a successful call: status, headers and attempts.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> petstore_client::Result<()> {
/// let meta = client.pets().list().with_meta().await?.meta;
/// println!("{} after {} requests and {:?} of waiting", meta.status(), meta.attempts(), meta.waited());
/// if let Some(id) = meta.headers().get("x-request-id") {
///     println!("the service calls it {id:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Meta {
    operation: Cow<'static, str>,
    url: Url,
    page_size: Option<u32>,
    status: StatusCode,
    headers: HeaderMap,
    deprecation: Option<Box<Deprecation>>,
    stats: CallStats,
    redactor: Redactor,
}

impl<T> Response<T> {
    pub(crate) fn new(value: T, meta: Meta) -> Self {
        Self { value, meta }
    }

    /// Replaces the value, and keeps its metadata.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Response<U> {
        Response {
            value: change(self.value),
            meta: self.meta,
        }
    }
}

impl Meta {
    pub(crate) fn new(
        request: Request,
        status: StatusCode,
        headers: HeaderMap,
        deprecation: Option<Deprecation>,
        stats: CallStats,
        redactor: Redactor,
    ) -> Self {
        Self {
            operation: request.operation,
            url: request.url,
            page_size: request.page_size,
            status,
            headers,
            deprecation: deprecation.map(Box::new),
            stats,
            redactor,
        }
    }

    /// Sets the headers, for tests. The deprecation is read from them.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.deprecation = Deprecation::of(&headers, None).map(Box::new);
        self.headers = headers;
        self
    }

    /// Returns the status, always a success (2xx).
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns all headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns when the service answered by its own clock: the header `Date` (RFC 9110, section 6.6.1).
    #[must_use]
    pub fn date(&self) -> Option<SystemTime> {
        date(&self.headers)
    }

    /// Returns the URL of the request.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the announced removal of the operation, if any. Values that the service leaves out
    /// come from the specification.
    #[must_use]
    pub fn deprecation(&self) -> Option<&Deprecation> {
        self.deprecation.as_deref()
    }

    /// Returns the number of attempts, including the successful one.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.stats.attempts
    }

    /// Returns how long the call waited: between attempts, for rate limits, and for other calls
    /// with the key ([`WaitReason`](crate::limits::WaitReason)).
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.stats.waited
    }

    /// Returns the number of items that a list requested.
    pub(crate) fn page_size(&self) -> Option<u32> {
        self.page_size
    }

    /// Returns the URL of the next page, or why it is invalid.
    pub(crate) fn next_page(&self) -> Result<Option<Url>, String> {
        next_page(&self.headers, &self.url)
    }
}

impl Response<Bytes> {
    /// Returns the status, always a success (2xx).
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.meta.status
    }

    /// Decodes the body from JSON.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Decode`](crate::ErrorKind::Decode) if it is not JSON of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.value).map_err(|problem| {
            let Meta {
                operation,
                status,
                headers,
                stats,
                redactor,
                ..
            } = &self.meta;
            let body = redactor.removed(self.value.clone());
            let error = Error::decode::<T>(*status, headers.clone(), &body, problem);
            error.with_operation(operation.clone()).with_stats(*stats)
        })
    }

    /// Returns the body as text, and replaces invalid UTF-8.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.value)
    }

    /// Decodes the body of an operation's response.
    pub(crate) fn decoded<T: DeserializeOwned>(self) -> Result<Response<T>, Error> {
        let value = self.json()?;
        Ok(self.map(|_| value))
    }
}
