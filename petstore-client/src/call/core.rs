//! What all calls of a client share, and what one of them asks for.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tokio::time::Instant;
use url::Url;

use crate::auth::Credentials;
use crate::deprecation::Deprecation;
use crate::error::Error;
use crate::events::{Event, Events};
use crate::http::base_url::BaseUrl;
use crate::options::CallLimits;
use crate::rate_limit::{ClientLimiters, Limiter, Policy, RateLimits};
use crate::redact::printable;
use crate::retry::{BudgetState, RetryPolicy};
use crate::transport::{HttpRequest, Network};

/// What all calls of a client share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) base: BaseUrl,
    pub(crate) network: Network,
    pub(crate) credentials: Credentials,
    pub(crate) limiters: ClientLimiters,
    pub(crate) limits: CallLimits,
    pub(crate) policy: Policy,
    /// The headers of every request.
    pub(crate) headers: HeaderMap,
    pub(crate) retry: RetryPolicy,
    pub(crate) budget: Mutex<BudgetState>,
    pub(crate) events: Events,
    /// How often the store of shared limits had changed its state when that was reported last.
    pub(crate) store_changes: AtomicU64,
    pub(crate) started: Instant,
}

/// An operation whose removal the specification announces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Removal {
    /// In seconds since 1970.
    pub(crate) sunset: u64,
    pub(crate) replacement: &'static str,
}

/// A request and what is asked of its call.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The specification's name of the operation, or method and path.
    pub(crate) operation: Cow<'static, str>,
    /// The path of the operation with its parameters' names, where that is known.
    pub(crate) template: Option<&'static str>,
    pub(crate) http: HttpRequest,
    /// Whether sending it twice does no more than sending it once.
    pub(crate) idempotent: bool,
    pub(crate) removal: Option<Removal>,
    /// Whether the first attempt is sent whatever is known of the limits.
    pub(crate) forced: bool,
    /// How many items a page may hold, where that was asked for.
    pub(crate) page_size: Option<u32>,
}

impl Core {
    /// Returns the limiter of the key that was used last.
    pub(crate) fn limiter(&self) -> Option<Arc<Limiter>> {
        match &self.credentials {
            // Before the first call too: others may have shared what they know.
            Credentials::Fixed(authorization) => Some(self.limiters.get(authorization)),
            Credentials::Provided(_) => self.limiters.last(),
        }
    }

    pub(crate) fn rate_limits(&self) -> RateLimits {
        self.limiter().map(|limiter| limiter.snapshot(&self.policy)).unwrap_or_default()
    }

    /// Returns the headers of a request as they are sent: its own, and the client's for the rest.
    pub(super) fn headers(&self, own: &HeaderMap) -> HeaderMap {
        // There is room for the credential.
        let mut headers = HeaderMap::with_capacity(self.headers.len() + own.len() + 1);
        let missing = self.headers.iter().filter(|(name, _)| !own.contains_key(*name));
        for (name, value) in missing.chain(own) {
            headers.append(name, value.clone());
        }
        headers
    }

    /// Returns a request as it would be sent, without its credential.
    pub(crate) fn built(&self, request: &Request) -> Result<http::Request<Bytes>, Error> {
        let mut built = request
            .http
            .to_http()
            .map_err(|failure| Error::new(failure).with_operation(request.operation.clone()))?;
        *built.headers_mut() = self.headers(&request.http.headers);
        Ok(built)
    }

    /// Returns, and reports, the announced end of an operation: what the response says, and where
    /// it is silent what the specification says.
    pub(super) fn deprecation(
        &self,
        request: &Request,
        headers: &HeaderMap,
    ) -> Option<Deprecation> {
        let specified =
            request.removal.map(|end| Deprecation::specified(end.sunset, end.replacement));
        let deprecation = match (Deprecation::read(headers), specified) {
            (Some(announced), Some(specified)) => announced.or(specified),
            (announced, specified) => announced.or(specified)?,
        };
        self.events.deprecated(&request.operation, &deprecation);
        Some(deprecation)
    }

    pub(super) fn report_store(&self, limiter: &Limiter) {
        if let Some(status) = limiter.store_news(&self.store_changes) {
            self.events.notify(|| Event::SharedStore(&status));
        }
    }

    pub(super) fn budget(&self) -> MutexGuard<'_, BudgetState> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since the client was built.
    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }
}

impl Request {
    pub(crate) fn new(operation: impl Into<Cow<'static, str>>, method: Method, url: Url) -> Self {
        let idempotent = method.is_idempotent();
        Self {
            operation: operation.into(),
            template: None,
            http: HttpRequest { method, url, headers: HeaderMap::new(), body: Bytes::new() },
            idempotent,
            removal: None,
            forced: false,
            page_size: None,
        }
    }

    pub(crate) fn with_template(mut self, path: &'static str) -> Self {
        self.template = Some(path);
        self
    }

    pub(crate) fn with_body(mut self, body: Bytes) -> Self {
        self.http.body = body;
        self
    }
}

/// Headers that the client sets itself: a second `Authorization` or `Host` would misdirect the key,
/// and a wrong length would break the connection for the request after this one.
const RESERVED: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
];

/// Checks a header that a program adds to a request.
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
