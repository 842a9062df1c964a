//! What all calls of a client share, and what one of them asks for.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::time::Instant;
use url::Url;

use crate::auth::Credentials;
use crate::backoff::Backoff;
use crate::deprecation::Deprecation;
use crate::error::Error;
use crate::events::{Attempt, Event, Events, Throttled, Waiting};
use crate::http::base_url::BaseUrl;
use crate::http::transport::{HttpRequest, HttpTransport};
use crate::options::CallLimits;
use crate::rate_limit::{Blocked, ClientLimiters, Limiter, Policy, RateLimits, Wait};
use crate::retry::BudgetState;

/// What all calls of a client share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) base: BaseUrl,
    pub(crate) transport: HttpTransport,
    pub(crate) credentials: Credentials,
    pub(crate) limiters: ClientLimiters,
    pub(crate) limits: CallLimits,
    pub(crate) policy: Policy,
    pub(crate) connect_timeout: Duration,
    pub(crate) backoff: Backoff,
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

    /// Returns a request as it would be sent, without its credential.
    pub(crate) fn built(&self, request: &Request) -> Result<http::Request<Bytes>, Error> {
        let HttpRequest { method, url, headers, body } = request.http.clone();
        let mut built = http::Request::new(body);
        *built.method_mut() = method;
        *built.uri_mut() = url.as_str().parse().map_err(|_| {
            Error::invalid("its address cannot be written into a request")
                .with_operation(request.operation.clone())
        })?;
        *built.headers_mut() = headers;
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

    pub(super) fn report_wait(&self, request: &Request, wait: Wait) {
        let Wait { reason, blocked } = wait;
        tracing::debug!(%reason, blocked = blocked.map(tracing::field::display), "waiting");
        let until = blocked.map(|blocked| blocked.until);
        let operation = &request.operation;
        self.events.notify(|| Event::Waiting(Waiting { operation, reason, blocked, until }));
    }

    pub(super) fn report_throttled(&self, request: &Request, attempt: u32, blocked: Blocked) {
        tracing::debug!(%blocked, "throttled");
        let operation = &request.operation;
        self.events.notify(|| Event::Throttled(Throttled { operation, attempt, blocked }));
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
            idempotent,
            http: HttpRequest { method, url, headers: HeaderMap::new(), body: Bytes::new() },
            removal: None,
            forced: false,
            page_size: None,
        }
    }

    pub(crate) fn with_body(mut self, body: Bytes) -> Self {
        self.http.body = body;
        self
    }

    /// Returns an attempt as it is reported.
    pub(super) fn attempt(&self, attempt: u32) -> Attempt<'_> {
        let Self { operation, http, .. } = self;
        let HttpRequest { method, url, headers, body } = http;
        Attempt { operation, attempt, method, url, headers, body }
    }
}
