//! The error of a call: an opaque type with accessors and predicates.

mod access;
mod kind;
mod response;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

pub use self::kind::{BoxError, ErrorKind, TimeoutKind};
pub use self::response::ErrorResponse;
pub(crate) use self::response::MAX_ERROR_BODY;
use self::response::explain_decode;
use crate::rate_limit::view::{Blocked, WaitReason};

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The statistics of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallStats {
    /// The number of attempts.
    pub(crate) attempts: u32,
    /// The time spent waiting before and between attempts.
    pub(crate) waited: Duration,
    /// Whether the service may have acted on one of the attempts.
    pub(crate) may_have_acted: bool,
    /// Whether sending the request twice has the same effect as sending it once.
    pub(crate) idempotent: bool,
}

/// Why a call failed.
///
/// [`kind`](Self::kind) says what happened; the `is_…` methods group several kinds. `Display`
/// writes one sentence with the operation and what to do. It is safe to print on a terminal.
/// [`source`](std::error::Error::source) is the cause.
///
/// ```
/// # async fn call(client: petstore_client::Client) {
/// match client.store().orders().await {
///     Ok(orders) => println!("{} bytes", orders.to_string().len()),
///     Err(error) if error.is_rate_limited() => println!("again at {:?}", error.retry_at()),
///     Err(error) => eprintln!("{error}"),
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    /// One thing to do about it, unless the request may have been processed.
    advice: Option<&'static str>,
    operation: Option<Cow<'static, str>>,
    stats: CallStats,
    /// Whether the request may have reached the service.
    sent: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    response: Option<ErrorResponse>,
    blocked: Option<Blocked>,
    has_waited_in_vain: bool,
    timeout: Option<TimeoutKind>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            advice: None,
            operation: None,
            stats: CallStats::default(),
            sent: kind.follows_sending(),
            source: None,
            response: None,
            blocked: None,
            has_waited_in_vain: false,
            timeout: None,
        }))
    }

    /// Records that the request may have reached the service, although the last step failed earlier.
    pub(crate) fn with_earlier_send(mut self) -> Self {
        self.0.sent = true;
        self
    }

    pub(crate) fn config(setting: &str, problem: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::Config,
            format!("the {setting} cannot be used: {problem}"),
        )
    }

    pub(crate) fn invalid(problem: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::InvalidRequest,
            format!("the request was not sent: {problem}"),
        )
    }

    pub(crate) fn cannot_run(problem: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::Runtime,
            format!("the call cannot run: {problem}"),
        )
    }

    pub(crate) fn paging(problem: impl fmt::Display) -> Self {
        let message = format!("stopped before the last page: {problem}");
        Self::new(ErrorKind::Paging, message)
    }

    /// `sent` says whether the request may have reached the service.
    pub(crate) fn timed_out(limit: TimeoutKind, after: Duration, sent: bool) -> Self {
        let message = format!(
            "timed out after {} s: {}",
            after.as_secs_f64(),
            limit.problem()
        );
        let mut error = Self::new(ErrorKind::Timeout, message);
        error.0.advice = Some(limit.advice());
        error.0.timeout = Some(limit);
        error.0.sent = sent;
        error
    }

    /// Creates the error for a response other than a success.
    pub(crate) fn from_response(response: ErrorResponse) -> Self {
        let kind = ErrorKind::of(response.status);
        let mut error = Self::new(kind, response.to_string());
        error.0.advice = response.advice();
        error.with_response(response)
    }

    /// Sets what to do, unless the request may have been processed.
    pub(crate) fn with_advice(mut self, advice: &'static str) -> Self {
        self.0.advice = Some(advice);
        self
    }

    pub(crate) fn rate_limited(blocked: Blocked) -> Self {
        let mut error = Self::new(ErrorKind::RateLimited, blocked.to_string());
        error.0.blocked = Some(blocked);
        error
    }

    /// Creates the error of a call that has waited for as long as it may, for something without a known end.
    pub(crate) fn waited_in_vain(reason: WaitReason, max_wait: Duration) -> Self {
        let seconds = max_wait.as_secs_f64();
        let message = format!("waited {seconds} s for {reason}, and may wait no longer");
        let mut error = Self::new(ErrorKind::RateLimited, message);
        error.0.has_waited_in_vain = true;
        error
    }

    /// Creates the error for a body that cannot be decoded as `T`.
    pub(crate) fn decode<T: DeserializeOwned>(
        status: StatusCode,
        headers: HeaderMap,
        body: &Bytes,
        problem: serde_json::Error,
    ) -> Self {
        let (problem, is_json, source) = explain_decode::<T>(body, problem);
        let message = format!(
            "the response {} could not be read: {problem}",
            status.as_u16()
        );
        let body = body.slice(..body.len().min(MAX_ERROR_BODY));
        let response = ErrorResponse {
            status,
            headers,
            body,
            ..ErrorResponse::default()
        };
        let mut error = Self::new(ErrorKind::Decode, message);
        if !is_json {
            error = error.with_advice("check the base URL");
        }
        error.with_response(response).with_source(source)
    }

    /// Adds the wait that the call still allows to the message of a rate limit.
    pub(crate) fn with_allowed_wait(mut self, allowed: Duration) -> Self {
        if let Some(blocked) = self.0.blocked {
            let seconds = (allowed.as_secs_f64() * 10.0).round() / 10.0;
            let message =
                format!("{blocked}, which is longer than this call may still wait ({seconds} s)");
            self.0.message = message.into();
        }
        self
    }

    pub(crate) fn with_source(self, source: impl Into<BoxError>) -> Self {
        self.with_shared_source(Arc::from(source.into()))
    }

    pub(crate) fn with_shared_source(
        mut self,
        source: Arc<dyn std::error::Error + Send + Sync>,
    ) -> Self {
        self.0.source = Some(source);
        self
    }

    pub(crate) fn with_response(mut self, response: ErrorResponse) -> Self {
        self.0.response = Some(response);
        self
    }

    pub(crate) fn with_operation(mut self, operation: impl Into<Cow<'static, str>>) -> Self {
        self.0.operation = Some(operation.into());
        self
    }

    pub(crate) fn with_stats(mut self, stats: CallStats) -> Self {
        self.0.stats = stats;
        self
    }
}
