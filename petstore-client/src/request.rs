//! A request, without its credential.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use url::Url;

use crate::deprecation::Removal;
use crate::error::Error;
use crate::redact::printable;

/// A request, and what its call has to know of it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The specification's name of the operation, or method and path.
    pub(crate) operation: Cow<'static, str>,
    /// The path of the operation with its parameters' names, where that is known.
    pub(crate) template: Option<&'static str>,
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// The headers of this request alone.
    pub(crate) headers: HeaderMap,
    /// The body, which may be empty.
    pub(crate) body: Bytes,
    /// Whether sending it twice has the same effect as sending it once.
    pub(crate) idempotent: bool,
    pub(crate) removal: Option<Removal>,
    /// Whether the first attempt is sent even if the rate limits are known to be used up.
    pub(crate) forced: bool,
    /// The number of items that a list asks for.
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

    /// Returns the headers as they are sent: its own, and the client's `defaults` for the rest.
    pub(crate) fn with_defaults(&self, defaults: &HeaderMap) -> HeaderMap {
        // There is room for the credential.
        let mut headers = HeaderMap::with_capacity(defaults.len() + self.headers.len() + 1);
        let missing = defaults.iter().filter(|(name, _)| !self.headers.contains_key(*name));
        for (name, value) in missing.chain(&self.headers) {
            headers.append(name, value.clone());
        }
        headers
    }

    /// Returns the request with these headers as other HTTP libraries know it.
    pub(crate) fn to_http(&self, headers: HeaderMap) -> Result<http::Request<Bytes>, Error> {
        let mut request = http::Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = headers;
        *request.uri_mut() = self.url.as_str().parse().map_err(|_| {
            Error::invalid("its address cannot be written into a request")
                .with_operation(self.operation.clone())
        })?;
        Ok(request)
    }
}

/// Headers that the client sets itself: a second `Authorization` or `Host` would misdirect the key,
/// and a wrong length would break the connection for the next request.
const RESERVED: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
];

/// Checks a header that a program adds to requests.
pub(crate) fn additional_header<V: TryInto<HeaderValue>>(
    name: &str,
    value: V,
) -> Result<(HeaderName, HeaderValue), String> {
    let Ok(name) = HeaderName::try_from(name) else {
        return Err(format!("`{}` is not a valid header name", printable(name, 60)));
    };
    if RESERVED.contains(&name) {
        return Err(format!("the client sets the header `{name}` itself"));
    }
    match value.try_into() {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(format!("the header `{name}` cannot hold its value")),
    }
}
