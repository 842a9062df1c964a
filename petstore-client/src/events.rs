//! Events of a client, for [`ClientBuilder::on_event`](crate::ClientBuilder::on_event).

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::clock::http_date;
use crate::deprecation::Deprecation;
use crate::error::Error;
use crate::rate_limit::{Blocked, Limiter, QuotaWindow, SharedStatus, WaitReason};

/// The target of all spans and log records.
pub(crate) const TARGET: &str = "petstore_client";

/// The maximum number of reported deprecated operations: raw requests can have any number of names.
const MAX_DEPRECATED: usize = 1_000;

/// Something that happened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request is about to be sent.
    Sending(Attempt<'a>),
    /// An attempt ended, with a response of any status or with an error.
    Finished(Finished<'a>),
    /// A call waits for rate limits. Only the first waiting call reports it.
    Waiting(Waiting<'a>),
    /// The service answered 429. This is rare. It happens if other clients use the key, or if the
    /// service does not show its limits.
    Throttled(Throttled<'a>),
    /// A failed attempt will be retried after a delay.
    Retrying(Retrying<'a>),
    /// An operation is deprecated. Each client reports it once per operation.
    Deprecated {
        /// The operation.
        operation: &'a str,
        /// The announcement.
        deprecation: &'a Deprecation,
    },
    /// The store of shared limits failed, or works again.
    SharedStore(&'a SharedStatus),
}

/// An attempt, without the API key.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Attempt<'a> {
    /// The operation: `listPets`, or the method and path.
    pub operation: &'a str,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The method.
    pub method: &'a Method,
    /// The complete URL.
    pub url: &'a Url,
    /// The headers, without `Authorization` and the headers of the connection.
    pub headers: &'a HeaderMap,
    /// The body, which may be empty.
    pub body: &'a Bytes,
}

/// An attempt that ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Finished<'a> {
    /// The attempt.
    pub request: Attempt<'a>,
    /// The duration of the attempt.
    pub elapsed: Duration,
    /// The response, or the error.
    pub outcome: Result<Received<'a>, &'a Error>,
}

/// A complete response with any status.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Received<'a> {
    /// The status.
    pub status: StatusCode,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The body without the API key; at most 64 KiB unless the status is a success.
    pub body: &'a Bytes,
}

impl<'a> Received<'a> {
    pub(crate) fn new(response: &'a http::Response<Bytes>, body: &'a Bytes) -> Self {
        Self {
            status: response.status(),
            headers: response.headers(),
            body,
        }
    }

    /// Returns the quota that the headers describe (specification, section 8).
    #[must_use]
    pub fn quota(&self) -> Option<QuotaWindow> {
        QuotaWindow::read(self.headers)
    }
}

/// A wait for rate limits.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Waiting<'a> {
    /// The operation that waits.
    pub operation: &'a str,
    /// The reason. A wait for other requests with the key is reported after a second.
    pub reason: WaitReason,
    /// The block of the key, if there is one.
    pub blocked: Option<Blocked>,
    /// The end of the wait on the service's clock, if known.
    pub until: Option<SystemTime>,
}

/// A 429.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Throttled<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The resulting block for all calls with the key.
    pub blocked: Blocked,
}

/// A retry that is about to wait.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Retrying<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The number of the attempt that failed, from 1.
    pub attempt: u32,
    /// Why it failed.
    pub error: &'a Error,
    /// The delay before the next attempt.
    pub delay: Duration,
}

impl Event<'_> {
    /// Logs the event. Deprecations and store changes are logged where they are detected.
    fn log(&self) {
        match self {
            Self::Sending(Attempt {
                operation, attempt, ..
            }) => {
                tracing::debug!(target: TARGET, operation, attempt, "sending");
            }
            Self::Finished(Finished {
                request: Attempt { attempt, .. },
                elapsed,
                outcome,
            }) => {
                match outcome.map(|received| received.status.as_u16()) {
                    Ok(status) => {
                        tracing::debug!(target: TARGET, attempt, status, ?elapsed, "answered");
                    }
                    Err(error) => {
                        // With its causes, as subscribers show a value of this type.
                        let error: &(dyn std::error::Error + 'static) = error;
                        tracing::debug!(target: TARGET, attempt, error, ?elapsed, "attempt failed");
                    }
                }
            }
            Self::Waiting(Waiting {
                reason, blocked, ..
            }) => {
                let blocked = blocked.map(tracing::field::display);
                tracing::debug!(target: TARGET, %reason, blocked, "waiting");
            }
            Self::Throttled(Throttled {
                blocked, attempt, ..
            }) => {
                tracing::debug!(target: TARGET, attempt, %blocked, "throttled");
            }
            Self::Retrying(Retrying { attempt, delay, .. }) => {
                tracing::debug!(target: TARGET, attempt, ?delay, "backing off before another attempt");
            }
            Self::Deprecated { .. } | Self::SharedStore(_) => {}
        }
    }
}

type Hook = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// The hooks of a client, and what it has reported.
#[derive(Default)]
pub(crate) struct Events {
    hooks: Vec<Hook>,
    /// The deprecated operations.
    deprecated: Mutex<HashSet<String>>,
    /// The number of state changes of the shared store.
    store_changes: AtomicU64,
}

impl Events {
    pub(crate) fn add(&mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) {
        self.hooks.push(Arc::new(hook));
    }

    /// Returns whether there is a hook, or a subscriber that logs events.
    pub(crate) fn are_observed(&self) -> bool {
        !self.hooks.is_empty() || tracing::enabled!(target: TARGET, tracing::Level::DEBUG)
    }

    /// Reports an event. `event` is only called if events are observed.
    pub(crate) fn notify<'e>(&self, event: impl FnOnce() -> Event<'e>) {
        if self.are_observed() {
            let event = event();
            event.log();
            self.hooks.iter().for_each(|hook| hook(&event));
        }
    }

    /// Reports whether the store of shared limits failed or works again, once per change.
    pub(crate) fn notify_store(&self, limiter: &Limiter) {
        if let Some(status) = limiter.store_status_change(&self.store_changes) {
            self.notify(|| Event::SharedStore(&status));
        }
    }

    /// Reports a deprecation once per operation.
    pub(crate) fn notify_deprecated(&self, operation: &str, deprecation: &Deprecation) {
        let mut reported = self
            .deprecated
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if reported.contains(operation) || reported.len() >= MAX_DEPRECATED {
            return;
        }
        reported.insert(operation.to_owned());
        drop(reported);
        tracing::warn!(
            target: TARGET,
            operation,
            sunset = deprecation.sunset().map(http_date),
            replacement = deprecation.replacement(),
            "this operation is deprecated"
        );
        self.notify(|| Event::Deprecated {
            operation,
            deprecation,
        });
    }
}
