//! Events of a client, for [`ClientBuilder::on_event`](crate::ClientBuilder::on_event), and requests that
//! hooks may change, for [`ClientBuilder::on_request`](crate::ClientBuilder::on_request).
//!
//! All events of a call have its `call_id`, which is unique in the process. The last one is
//! [`Event::Ended`]. It says how long the call took with all waits, how many attempts it made, and
//! how it ended, so that one event per call is enough for statistics.
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use petstore_client::Client;
//! use petstore_client::events::{CallOutcome, Event};
//!
//! static FAILED: AtomicU64 = AtomicU64::new(0);
//!
//! let client = Client::builder("https://petstore.example/v1")
//!     .api_key("s3cret")
//!     .on_event(|event| {
//!         if let Event::Ended(ended) = event {
//!             println!("{} took {:?}", ended.operation, ended.elapsed);
//!             if let CallOutcome::Failed(_) = ended.outcome {
//!                 FAILED.fetch_add(1, Ordering::Relaxed);
//!             }
//!         }
//!     })
//!     .build()?;
//! # let _ = client;
//! # Ok::<(), petstore_client::Error>(())
//! ```

mod hooks;
mod request;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

pub(crate) use self::hooks::Events;
pub use self::request::AttemptRequest;
use crate::deprecation::Deprecation;
use crate::error::Error;
use crate::logging::TARGET;
use crate::rate_limit::{Blocked, QuotaWindow, SharedStatus, WaitReason};

/// Something that happened.
///
/// ```
/// use petstore_client::Client;
/// use petstore_client::events::Event;
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .on_event(|event| match event {
///         Event::Waiting(wait) => eprintln!("{} waits: {:?}", wait.operation, wait.reason),
///         Event::Retrying(retry) => eprintln!("again in {:?}: {}", retry.delay, retry.error),
///         _ => {}
///     })
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
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
    /// A call ended: it succeeded, failed or was cancelled. The last event of each call that was
    /// polled.
    Ended(Ended<'a>),
    /// An operation is deprecated. Each client reports it once per operation.
    #[non_exhaustive]
    Deprecated {
        /// The operation.
        operation: &'a str,
        /// The number of the call whose response announced it.
        call_id: u64,
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
    /// The number of the call, the same in all its events and unique in the process.
    pub call_id: u64,
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
///
/// ```
/// use petstore_client::events::Event;
///
/// fn log(event: &Event<'_>) {
///     if let Event::Finished(finished) = event
///         && let Ok(received) = finished.outcome
///     {
///         let left = received.quota().map(|quota| quota.remaining);
///         println!("{} after {:?}, {left:?} requests left", received.status, finished.elapsed);
///     }
/// }
/// ```
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
    /// The operation: `listPets`, or the method and path.
    pub operation: &'a str,
    /// The number of the call.
    pub call_id: u64,
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
    /// The number of the call.
    pub call_id: u64,
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
    /// The number of the call.
    pub call_id: u64,
    /// The number of the attempt that failed, from 1.
    pub attempt: u32,
    /// Why it failed.
    pub error: &'a Error,
    /// The delay before the next attempt.
    pub delay: Duration,
}

/// A call that ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Ended<'a> {
    /// The operation: `listPets`, or the method and path.
    pub operation: &'a str,
    /// The number of the call.
    pub call_id: u64,
    /// The number of attempts.
    pub attempts: u32,
    /// The time spent waiting before and between attempts.
    pub waited: Duration,
    /// The duration of the call from its first poll, waits included.
    pub elapsed: Duration,
    /// How it ended.
    pub outcome: CallOutcome<'a>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum CallOutcome<'a> {
    /// It succeeded, with this status.
    Succeeded(StatusCode),
    /// It failed.
    Failed(&'a Error),
    /// The call's future was dropped before it returned a result.
    Cancelled,
}

impl Event<'_> {
    /// Logs the event. Deprecations, store changes and 429s are logged where they are detected.
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
                        // Subscribers show the causes of an error only if the field has this type.
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
            Self::Retrying(Retrying { attempt, delay, .. }) => {
                tracing::debug!(target: TARGET, attempt, ?delay, "backing off before another attempt");
            }
            Self::Ended(Ended {
                attempts,
                waited,
                elapsed,
                outcome,
                ..
            }) => {
                let outcome = match outcome {
                    CallOutcome::Succeeded(_) => "succeeded",
                    CallOutcome::Failed(_) => "failed",
                    CallOutcome::Cancelled => "was cancelled",
                };
                tracing::debug!(target: TARGET, attempts, ?waited, ?elapsed, "the call {outcome}");
            }
            Self::Throttled(_) | Self::Deprecated { .. } | Self::SharedStore(_) => {}
        }
    }
}
