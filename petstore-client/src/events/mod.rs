//! Events of a client, for [`ClientBuilder::on_event`](crate::ClientBuilder::on_event), and requests that
//! hooks may change, for [`ClientBuilder::on_request`](crate::ClientBuilder::on_request).
//!
//! All events of a call have its `call_id`, which is unique in the process. The last one is
//! [`EventKind::Ended`]. It says how long the call took with all waits, how many attempts it made, and
//! how it ended, so that one event per call is enough for statistics.
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use petstore_client::Client;
//! use petstore_client::events::EventKind;
//!
//! static FAILED: AtomicU64 = AtomicU64::new(0);
//!
//! let client = Client::builder("https://petstore.example/v1")
//!     .api_key("s3cret")
//!     .on_event(|event| {
//!         if let EventKind::Ended { result, elapsed, .. } = event.kind {
//!             println!("{} took {elapsed:?}", event.operation.unwrap_or_default());
//!             if let Some(Err(_)) = result {
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

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

pub(crate) use self::hooks::Events;
pub use self::request::AttemptRequest;
use crate::deprecation::Deprecation;
use crate::error::Error;
use crate::logging::TARGET;
use crate::rate_limit::{Blocked, Shared, WaitReason};

/// Something that happened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The operation: `listPets`, or the method and path; `None` if it concerns no call.
    pub operation: Option<&'a str>,
    /// The number of the call, the same in all its events and unique in the process; `None` if it
    /// concerns no call.
    pub call_id: Option<u64>,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// What happened. Attempts are counted from 1.
///
/// ```
/// use petstore_client::Client;
/// use petstore_client::events::EventKind;
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .on_event(|event| match event.kind {
///         EventKind::Waiting { reason, .. } => eprintln!("{:?} waits for {reason}", event.operation),
///         EventKind::Retrying { delay, error, .. } => eprintln!("again in {delay:?}: {error}"),
///         _ => {}
///     })
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// A request is about to be sent.
    #[non_exhaustive]
    Sending {
        /// The number of the attempt.
        attempt: u32,
        /// The method.
        method: &'a Method,
        /// The complete URL.
        url: &'a Url,
        /// The headers, without `Authorization` and the headers of the connection.
        headers: &'a HeaderMap,
        /// The body, which may be empty.
        body: &'a Bytes,
    },
    /// An attempt ended with a complete response, of any status.
    #[non_exhaustive]
    Answered {
        /// The number of the attempt.
        attempt: u32,
        /// The method of the request.
        method: &'a Method,
        /// The complete URL of the request.
        url: &'a Url,
        /// The status.
        status: StatusCode,
        /// All headers.
        headers: &'a HeaderMap,
        /// The body.
        body: &'a Bytes,
        /// The duration of the attempt.
        elapsed: Duration,
    },
    /// An attempt ended without a complete response.
    #[non_exhaustive]
    Failed {
        /// The number of the attempt.
        attempt: u32,
        /// The method of the request.
        method: &'a Method,
        /// The complete URL of the request.
        url: &'a Url,
        /// Why.
        error: &'a Error,
        /// The duration of the attempt.
        elapsed: Duration,
    },
    /// A call waits for rate limits. Only the first waiting call reports it.
    #[non_exhaustive]
    Waiting {
        /// The reason. A wait for other requests with the key is reported after a second.
        reason: WaitReason,
        /// The block of the key, if there is one.
        blocked: Option<Blocked>,
    },
    /// The service answered 429. This is rare. It happens if other clients use the key, or if the
    /// service does not show its limits.
    #[non_exhaustive]
    Throttled {
        /// The number of the attempt.
        attempt: u32,
        /// The resulting block for all calls with the key.
        blocked: Blocked,
    },
    /// A failed attempt will be retried after a delay.
    #[non_exhaustive]
    Retrying {
        /// The number of the attempt that failed.
        attempt: u32,
        /// Why it failed.
        error: &'a Error,
        /// The delay before the next attempt.
        delay: Duration,
    },
    /// The operation is deprecated. Each client reports it once per operation.
    Deprecated(&'a Deprecation),
    /// A call ended. The last event of each call that was polled.
    #[non_exhaustive]
    Ended {
        /// The status of its success, or its error; `None` if its future was dropped before.
        result: Option<Result<StatusCode, &'a Error>>,
        /// The number of attempts.
        attempts: u32,
        /// The time spent waiting before and between attempts.
        waited: Duration,
        /// The duration of the call from its first poll, waits included.
        elapsed: Duration,
    },
    /// The store of shared limits failed, or works again.
    SharedStore(&'a Shared),
}

impl Event<'_> {
    /// Logs the event. Deprecations, store changes and 429s are logged where they are detected.
    fn log(&self) {
        match self.kind {
            EventKind::Sending { attempt, .. } => {
                let operation = self.operation;
                tracing::debug!(target: TARGET, operation, attempt, "sending");
            }
            EventKind::Answered {
                attempt,
                status,
                elapsed,
                ..
            } => {
                let status = status.as_u16();
                tracing::debug!(target: TARGET, attempt, status, ?elapsed, "answered");
            }
            EventKind::Failed {
                attempt,
                error,
                elapsed,
                ..
            } => {
                // Subscribers show the causes of an error only if the field has this type.
                let error: &(dyn std::error::Error + 'static) = error;
                tracing::debug!(target: TARGET, attempt, error, ?elapsed, "attempt failed");
            }
            EventKind::Waiting { reason, blocked } => {
                let blocked = blocked.map(tracing::field::display);
                tracing::debug!(target: TARGET, %reason, blocked, "waiting");
            }
            EventKind::Retrying { attempt, delay, .. } => {
                tracing::debug!(target: TARGET, attempt, ?delay, "backing off before another attempt");
            }
            EventKind::Ended {
                result,
                attempts,
                waited,
                elapsed,
            } => {
                let outcome = match result {
                    Some(Ok(_)) => "succeeded",
                    Some(Err(_)) => "failed",
                    None => "was cancelled",
                };
                tracing::debug!(target: TARGET, attempts, ?waited, ?elapsed, "the call {outcome}");
            }
            EventKind::Throttled { .. } | EventKind::Deprecated(_) | EventKind::SharedStore(_) => {}
        }
    }
}
