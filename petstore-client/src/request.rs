//! A request, without its credential.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, Method};
use url::Url;

use crate::deprecation::Removal;
use crate::error::Error;
use crate::wire::extra_headers::add_missing;

/// A request, with the metadata that its call needs.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The specification's name of the operation, or the method and path.
    pub(crate) operation: Cow<'static, str>,
    /// The operation's path with the names of its parameters, if known.
    pub(crate) template: Option<&'static str>,
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// The request's own headers.
    pub(crate) headers: HeaderMap,
    /// The body, which may be empty.
    pub(crate) body: Bytes,
    /// Whether sending it twice has the same effect as sending it once.
    pub(crate) idempotent: bool,
    pub(crate) removal: Option<Removal>,
    /// Whether it is sent even if the rate limits are known to be used up.
    pub(crate) forced: bool,
    /// The number of items that a list requests.
    pub(crate) page_size: Option<u32>,
}

impl Request {
    pub(crate) fn new(operation: impl Into<Cow<'static, str>>, method: Method, url: Url) -> Self {
        Self {
            operation: operation.into(),
            template: None,
            idempotent: method.is_idempotent(),
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            removal: None,
            forced: false,
            page_size: None,
        }
    }

    /// Returns the headers to send: those of the request, completed by the client's `defaults`.
    pub(crate) fn with_defaults(&self, defaults: &HeaderMap) -> HeaderMap {
        if self.headers.is_empty() {
            return defaults.clone();
        }
        let mut headers = self.headers.clone();
        add_missing(&mut headers, defaults);
        headers
    }

    /// Converts the request, with these headers, to the type of the `http` crate.
    pub(crate) fn to_http(&self, headers: HeaderMap) -> Result<http::Request<Bytes>, Error> {
        let mut request = http::Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = headers;
        *request.uri_mut() = self.url.as_str().parse().map_err(|_| {
            Error::invalid("its URL cannot be written into a request")
                .with_operation(self.operation.clone())
        })?;
        Ok(request)
    }
}
