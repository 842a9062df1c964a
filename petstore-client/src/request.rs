//! A request as the pipeline takes it: everything but the key.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, Method};
use url::Url;

use crate::deprecation::Deprecation;
use crate::options::CallOptions;

/// An operation that the specification itself calls deprecated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doomed {
    /// When it is to be removed, in seconds since 1970.
    pub(crate) sunset: u64,
    pub(crate) successor: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The specification's name of the operation, or method and path.
    pub(crate) operation: Cow<'static, str>,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// A body; its content type is among the headers.
    pub(crate) body: Option<Bytes>,
    pub(crate) options: CallOptions,
    pub(crate) doomed: Option<Doomed>,
}

impl Request {
    pub(crate) fn new(operation: impl Into<Cow<'static, str>>, method: Method, url: Url) -> Self {
        Self {
            operation: operation.into(),
            method,
            url,
            headers: HeaderMap::new(),
            body: None,
            options: CallOptions::new(),
            doomed: None,
        }
    }

    /// Returns what a response announces, and where it is silent what the specification says.
    pub(crate) fn deprecation(&self, headers: &HeaderMap) -> Option<Deprecation> {
        let announced = Deprecation::read(headers);
        let Some(doomed) = self.doomed else { return announced };
        let specified = Deprecation::specified(doomed.sunset, doomed.successor);
        Some(match announced {
            Some(announced) => announced.or(specified),
            None => specified,
        })
    }
}
