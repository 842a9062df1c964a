//! Tells what a program may want to show: a deprecated operation, once however often it is
//! called, each wait that a rate limit asks for, each refusal, and all that goes over the wire.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::clock::http_date;
use crate::deprecation::Deprecation;
use crate::error::{Error, Quota};
use crate::headers::{RateLimit, rate_limit, service_time};

/// Raw requests name operations as they like: remember this many, and be silent on the rest.
const MOST: usize = 1_000;

/// Hears of each deprecated operation, once for each client.
pub(crate) type DeprecationHook = Arc<dyn Fn(&str, &Deprecation) + Send + Sync>;
/// Hears of each wait.
pub(crate) type WaitHook = Arc<dyn Fn(&Wait<'_>) + Send + Sync>;

/// Hears of each refusal.
pub(crate) type RefusalHook = Arc<dyn Fn(&Refusal<'_>) + Send + Sync>;

/// A wait that begins: a rate limit holds a call back.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Wait<'w> {
    /// The operation that waits, by the specification's name or as method and path.
    pub operation: &'w str,
    /// Which limit asks for it.
    pub quota: Quota,
    /// How long it will be, as far as is known now.
    pub length: Duration,
    /// When it ends, on the service's clock.
    pub until: SystemTime,
}

/// A refusal that came: 429, or 503 with `Retry-After` (specification, section 8). It holds back
/// all calls with the key until its end.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Refusal<'r> {
    /// The operation that was refused, by the specification's name or as method and path.
    pub operation: &'r str,
    /// 429 or 503.
    pub status: StatusCode,
    /// Which limit it is about, as far as can be told.
    pub quota: Quota,
    /// How long requests are held back for it.
    pub wait: Duration,
    /// Until when, on the service's clock.
    pub until: SystemTime,
    /// The how-manieth attempt of the call it was the answer to, from 1.
    pub attempt: u32,
}

/// Hears of each attempt.
pub(crate) type ExchangeHook = Arc<dyn Fn(&Exchange<'_>) + Send + Sync>;

/// An attempt that has ended: what was sent, and what came of it. Nothing in it is the key's, but
/// for what the service itself repeats in the body of a success.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Exchange<'e> {
    /// The operation, by the specification's name or as method and path.
    pub operation: &'e str,
    /// The how-manieth attempt of the call it was, from 1.
    pub attempt: u32,
    /// The method of the request.
    pub method: &'e Method,
    /// The whole address of the request.
    pub url: &'e Url,
    /// The headers that the request brought along. `Authorization`, and those that are the same
    /// for every request of a connection, are added below.
    pub headers: &'e HeaderMap,
    /// The body of the request.
    pub body: Option<&'e Bytes>,
    /// From when it was sent until it had ended.
    pub elapsed: Duration,
    /// What came.
    pub answer: Result<Answer<'e>, &'e Error>,
}

/// A whole answer, of whatever status.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Answer<'e> {
    /// The status.
    pub status: StatusCode,
    /// All headers as they came.
    pub headers: &'e HeaderMap,
    /// The body as it came; of an answer that is no success at most 64 KiB are read.
    pub body: &'e Bytes,
}

impl Answer<'_> {
    /// Returns the quota that the answer describes (specification, section 8), where its three
    /// headers make sense.
    #[must_use]
    pub fn rate_limit(&self) -> Option<RateLimit> {
        rate_limit(self.headers, service_time(self.headers))
    }
}

/// The functions that a program sets.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) on_deprecation: Option<DeprecationHook>,
    pub(crate) on_wait: Option<WaitHook>,
    pub(crate) on_refusal: Option<RefusalHook>,
    pub(crate) on_exchange: Option<ExchangeHook>,
}

pub(crate) struct Notices {
    hooks: Hooks,
    told: Mutex<HashSet<String>>,
}

impl Notices {
    pub(crate) fn new(hooks: Hooks) -> Self {
        Self { hooks, told: Mutex::default() }
    }

    pub(crate) fn refused(&self, refusal: &Refusal<'_>) {
        let Refusal { quota, wait, .. } = refusal;
        tracing::debug!(status = refusal.status.as_u16(), %quota, ?wait, "refused by a rate limit");
        if let Some(hook) = &self.hooks.on_refusal {
            hook(refusal);
        }
    }

    /// Tells of an exchange, which is only put together where somebody hears of it.
    pub(crate) fn exchanged<'e>(&self, exchange: impl FnOnce() -> Exchange<'e>) {
        if let Some(hook) = &self.hooks.on_exchange {
            hook(&exchange());
        }
    }

    pub(crate) fn waits(&self, wait: &Wait<'_>) {
        tracing::debug!(quota = %wait.quota, length = ?wait.length, "held back by a rate limit");
        if let Some(hook) = &self.hooks.on_wait {
            hook(wait);
        }
    }

    pub(crate) fn tell(&self, operation: &str, deprecation: &Deprecation) {
        if !self.is_first(operation) {
            return;
        }
        tracing::warn!(
            operation,
            sunset = deprecation.sunset().map(http_date),
            successor = deprecation.successor(),
            "this operation is deprecated"
        );
        if let Some(hook) = &self.hooks.on_deprecation {
            hook(operation, deprecation);
        }
    }

    fn is_first(&self, operation: &str) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        !told.contains(operation) && told.len() < MOST && told.insert(operation.to_owned())
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").field("told", &self.told).finish_non_exhaustive()
    }
}
