//! A successful response: a value and its metadata.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

use crate::deprecation::Deprecation;
use crate::error::{CallStats, Error};
use crate::http::headers::date;
use crate::http::redact::Redactor;
use crate::page::{Page, next_page};
use crate::rate_limit::QuotaWindow;

/// A value that the service returned. It derefs to the value; [`meta`](Self::meta) returns status
/// and headers.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// let pets = client.pets().list().await?;
/// println!("{} pets, {:?} left", pets.len(), pets.meta().quota().map(|quota| quota.remaining));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Response<T> {
    value: T,
    meta: ResponseMeta,
}

/// The metadata of a successful call: status, headers and attempts.
///
/// ```
/// # async fn show(client: petstore_client::Client) -> petstore_client::Result<()> {
/// let page = client.pets().list().await?;
/// let meta = page.meta();
/// println!("{} after {} requests and {:?} of waiting", meta.status(), meta.attempts(), meta.waited());
/// if let Some(id) = meta.headers().get("x-request-id") {
///     println!("the service calls it {id:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ResponseMeta {
    pub(crate) operation: Cow<'static, str>,
    /// The URL of the request.
    pub(crate) url: Url,
    /// The requested number of items, for a list.
    pub(crate) page_size: Option<u32>,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) deprecation: Option<Box<Deprecation>>,
    pub(crate) stats: CallStats,
    pub(crate) redactor: Redactor,
}

impl<T> Response<T> {
    pub(crate) fn new(value: T, meta: ResponseMeta) -> Self {
        Self { value, meta }
    }

    /// Returns the status, headers, quota and attempts.
    #[must_use]
    pub fn meta(&self) -> &ResponseMeta {
        &self.meta
    }

    /// Returns the value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns the value and its metadata.
    #[must_use]
    pub fn into_parts(self) -> (T, ResponseMeta) {
        (self.value, self.meta)
    }

    /// Replaces the value, and keeps its metadata.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Response<U> {
        Response {
            value: change(self.value),
            meta: self.meta,
        }
    }
}

impl ResponseMeta {
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

    /// Returns the quota that the response describes (specification, section 8), if its three
    /// headers are valid.
    #[must_use]
    pub fn quota(&self) -> Option<QuotaWindow> {
        QuotaWindow::read(&self.headers)
    }

    /// Returns the time of the response (`Date`).
    #[must_use]
    pub fn date(&self) -> Option<SystemTime> {
        date(&self.headers)
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
    /// with the key ([`WaitReason`](crate::rate_limit::WaitReason)).
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.stats.waited
    }

    /// Returns the URL of the next page, or why it is invalid.
    pub(crate) fn next_page(&self) -> Result<Option<Url>, String> {
        next_page(&self.headers, &self.url)
    }
}

impl<T> Deref for Response<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Response<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> AsRef<T> for Response<T> {
    fn as_ref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Display> fmt::Display for Response<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T> IntoIterator for Response<Page<T>> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.value.into_iter()
    }
}

impl<'r, T> IntoIterator for &'r Response<Page<T>> {
    type Item = &'r T;
    type IntoIter = std::slice::Iter<'r, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.value.iter()
    }
}

impl Response<Bytes> {
    /// Decodes the body of a raw response from JSON.
    ///
    /// # Errors
    ///
    /// Fails if it is not JSON of this type; see [`Error::decode_path`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.value).map_err(|problem| {
            let ResponseMeta {
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
