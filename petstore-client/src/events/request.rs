//! A request that hooks may change.

use http::{HeaderMap, HeaderValue, Method};
use url::Url;

use crate::error::Error;
use crate::request::Request;
use crate::wire::extra_headers::additional_header;

/// The request of one attempt, for [`ClientBuilder::on_request`](crate::ClientBuilder::on_request).
///
/// ```
/// use petstore_client::Client;
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .on_request(|request| {
///         let id = format!("{}-{}", request.call_id(), request.attempt());
///         let _ = request.insert_header("X-Request-Id", id);
///     })
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[derive(Debug)]
pub struct AttemptRequest<'a> {
    request: &'a Request,
    call_id: u64,
    attempt: u32,
    headers: &'a mut HeaderMap,
}

impl<'a> AttemptRequest<'a> {
    pub(crate) fn new(
        request: &'a Request,
        call_id: u64,
        attempt: u32,
        headers: &'a mut HeaderMap,
    ) -> Self {
        Self {
            request,
            call_id,
            attempt,
            headers,
        }
    }
}

impl AttemptRequest<'_> {
    /// Returns the operation: `listPets`, or the method and path.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.request.operation
    }

    /// Returns the number of the call, which all its events have.
    #[must_use]
    pub fn call_id(&self) -> u64 {
        self.call_id
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.request.method
    }

    /// Returns the complete URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.request.url
    }

    /// Returns the headers, without `Authorization` and the headers of the connection.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.headers
    }

    /// Sets a header of this attempt, in place of an earlier one with this name.
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if the name or value
    /// is invalid, or if the client sets this header itself: `Authorization`, `Host`, `Connection` and
    /// the headers for the body's length.
    pub fn insert_header<V: TryInto<HeaderValue>>(
        &mut self,
        name: impl AsRef<str>,
        value: V,
    ) -> Result<(), Error> {
        let (name, value) = additional_header(name.as_ref(), value).map_err(Error::invalid)?;
        self.headers.insert(name, value);
        Ok(())
    }
}
