//! The error of a call: an opaque type with accessors and predicates.

mod kind;
mod response;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

pub use self::kind::{BoxError, ErrorKind, TimeoutKind};
use self::response::explain_decode;
pub(crate) use self::response::{ErrorResponse, MAX_ERROR_BODY};
use crate::clock;
use crate::http::headers;
use crate::rate_limit::{Blocked, QuotaWindow};

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
    /// The problem, and one thing to do about it other than sending the request again.
    message: Cow<'static, str>,
    /// Advice to show only if the request can safely be sent again.
    repeat: Option<&'static str>,
    operation: Option<Cow<'static, str>>,
    stats: CallStats,
    /// Whether the request may have reached the service.
    sent: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    response: Option<ErrorResponse>,
    blocked: Option<Blocked>,
    timeout: Option<TimeoutKind>,
    decode_path: Option<String>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            repeat: None,
            operation: None,
            stats: CallStats::default(),
            sent: kind.follows_sending(),
            source: None,
            response: None,
            blocked: None,
            timeout: None,
            decode_path: None,
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
        error.0.repeat = limit.advice();
        error.0.timeout = Some(limit);
        error.0.sent = sent;
        error
    }

    /// Creates the error for a response other than a success.
    pub(crate) fn from_response(response: ErrorResponse) -> Self {
        let kind = ErrorKind::of(response.status);
        let mut error = Self::new(kind, response.to_string());
        error.0.repeat = response.repeat_advice();
        error.with_response(response)
    }

    /// Sets the advice to show only if the request can safely be sent again.
    pub(crate) fn with_repeat_advice(mut self, advice: &'static str) -> Self {
        self.0.repeat = Some(advice);
        self
    }

    /// Adds to the 404 or 410 of a `DELETE` that an earlier attempt may be the reason.
    pub(crate) fn with_earlier_deletion(mut self) -> Self {
        let message = &self.0.message;
        self.0.message =
            format!("{message}; an earlier attempt, whose response was lost, may have deleted it")
                .into();
        self
    }

    pub(crate) fn rate_limited(blocked: Blocked) -> Self {
        let message = format!("{blocked}; retry then, or allow more attempts");
        let mut error = Self::new(ErrorKind::RateLimited, message);
        error.0.blocked = Some(blocked);
        error
    }

    /// Creates the error for a body that cannot be decoded as `T`.
    pub(crate) fn decode<T: DeserializeOwned>(
        status: StatusCode,
        headers: HeaderMap,
        body: &Bytes,
        problem: serde_json::Error,
    ) -> Self {
        let (path, problem, source) = explain_decode::<T>(body, problem);
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
        let mut error = Self::new(ErrorKind::Decode, message).with_response(response);
        error.0.decode_path = Some(path);
        error.with_source(source)
    }

    /// Adds the wait that the call still allows to the message of a rate limit.
    pub(crate) fn with_allowed_wait(mut self, allowed: Duration) -> Self {
        if let Some(blocked) = self.0.blocked {
            let seconds = (allowed.as_secs_f64() * 10.0).round() / 10.0;
            let message = format!(
                "{blocked}, which is longer than this call may still wait ({seconds} s); \
                 retry then, or allow a longer `max_wait` and `timeout`"
            );
            self.0.message = message.into();
        }
        self
    }

    pub(crate) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
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

    /// Returns whether the request of the last attempt may have reached the service.
    pub(crate) fn was_sent(&self) -> bool {
        self.0.sent
    }

    pub(crate) fn response(&self) -> Option<&ErrorResponse> {
        self.0.response.as_ref()
    }

    /// Returns the status of the response, if any.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.response().map(|response| response.status)
    }

    /// Returns what is wrong and what to do, without the operation and the attempts, for programs
    /// that name those themselves. It is safe to print on a terminal.
    #[must_use]
    pub fn problem(&self) -> Cow<'_, str> {
        match self.0.repeat {
            Some(advice) if !self.is_unsafe_to_repeat() => {
                format!("{}; {advice}", self.0.message).into()
            }
            _ => (&*self.0.message).into(),
        }
    }

    /// Returns whether sending the request again may do the same thing twice.
    fn is_unsafe_to_repeat(&self) -> bool {
        self.may_have_been_processed() && !self.0.stats.idempotent
    }

    /// Returns the service's `code` as sent. The set of codes is open.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.response()?.code.as_deref()
    }

    /// Returns the service's `message` as sent. It may contain control characters.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.response()?.message.as_deref()
    }

    /// Returns the body of the response, at most 64 KiB, without the API key. It is empty if the
    /// response was too large.
    #[must_use]
    pub fn body(&self) -> Option<&Bytes> {
        self.response().map(|response| &response.body)
    }

    /// Decodes the body of the response, for services whose Error object has more fields.
    ///
    /// ```
    /// #[derive(serde::Deserialize)]
    /// struct Problem {
    ///     field: String,
    /// }
    ///
    /// fn show(error: &petstore_client::Error) {
    ///     if let Ok(problem) = error.json::<Problem>() {
    ///         println!("`{}` is wrong", problem.field);
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with [`ErrorKind::Decode`] if there is no response, or if its body is not JSON of this
    /// type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        let Some(ErrorResponse {
            status,
            headers,
            body,
            ..
        }) = self.response()
        else {
            return Err(Self::new(ErrorKind::Decode, "there is no response to read"));
        };
        serde_json::from_slice(body)
            .map_err(|problem| Self::decode::<T>(*status, headers.clone(), body, problem))
    }

    /// Returns the headers of the response, if any.
    #[must_use]
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.response().map(|response| &response.headers)
    }

    /// Returns the quota that the response describes (specification, section 8).
    #[must_use]
    pub fn quota(&self) -> Option<QuotaWindow> {
        QuotaWindow::read(self.headers()?)
    }

    /// Returns the time of the response (`Date`), if any.
    #[must_use]
    pub fn date(&self) -> Option<SystemTime> {
        headers::date(self.headers()?)
    }

    /// Returns the path in the JSON at which decoding failed, such as `[3].categoryId`; `.` is the
    /// root. It is escaped, and cut to 200 characters.
    #[must_use]
    pub fn decode_path(&self) -> Option<&str> {
        self.0.decode_path.as_deref()
    }

    /// Returns the block that ended the call, if any.
    #[must_use]
    pub fn blocked(&self) -> Option<&Blocked> {
        self.0.blocked.as_ref()
    }

    /// Returns when to retry, on the service's clock: at the end of the block, or after the
    /// `Retry-After` of a 5xx or 408.
    #[must_use]
    pub fn retry_at(&self) -> Option<SystemTime> {
        match self.blocked() {
            Some(blocked) => Some(blocked.until),
            None => self
                .date()
                .unwrap_or_else(clock::wall)
                .checked_add(self.retry_after()?),
        }
    }

    /// Returns the time from the error to [`retry_at`](Self::retry_at). Unlike that, it does not
    /// depend on a correct local clock. Round it up if you send it on in a `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Some(blocked) = self.blocked() {
            return Some(blocked.remaining);
        }
        let response = self.response()?;
        if !response.status.is_server_error() && response.status != StatusCode::REQUEST_TIMEOUT {
            return None;
        }
        let service_now = self.date().unwrap_or_else(clock::wall);
        headers::retry_after(&response.headers, service_now)
    }

    /// Returns the operation: the specification's name (`listPets`), or the method and path.
    #[must_use]
    pub fn operation(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }

    /// Returns the number of attempts; 0 if the call failed before the first, or if its runtime ended
    /// or was blocked.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.stats.attempts
    }

    /// Returns how long the call waited: between attempts, for rate limits, and for other calls
    /// with the key ([`WaitReason`](crate::rate_limit::WaitReason)).
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.0.stats.waited
    }

    /// Returns whether the service may have processed the request: the response was lost, or it was
    /// a 5xx, for example. If `false`, the request is safe to send again.
    #[must_use]
    pub fn may_have_been_processed(&self) -> bool {
        self.0.stats.may_have_acted
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the time limit that ended the call, if any.
    #[must_use]
    pub fn timeout(&self) -> Option<TimeoutKind> {
        self.0.timeout
    }

    /// Returns whether the key is missing or invalid (401), or the key provider failed.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Unauthorized | ErrorKind::Credentials
        )
    }

    /// Returns whether the resource or the path does not exist (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Returns whether a rate limit or a ban ended the call: a 429, or a wait beyond `max_wait`.
    /// [`retry_at`](Self::retry_at) says when to retry.
    #[must_use]
    pub fn is_rate_limited(&self) -> bool {
        self.kind() == ErrorKind::RateLimited
    }

    /// Returns whether a time limit expired, including the one for connecting.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Returns whether connecting failed: [`ErrorKind::Connect`], [`ErrorKind::Tls`], or a time-out
    /// while connecting.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        matches!(self.kind(), ErrorKind::Connect | ErrorKind::Tls)
            || self.timeout() == Some(TimeoutKind::Connect)
    }

    /// Returns whether the same call may succeed later: after a failed connection, a time-out, an
    /// interruption, a 408 or 5xx, or a rate limit.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self.kind() {
            ErrorKind::Connect
            | ErrorKind::Timeout
            | ErrorKind::Interrupted
            | ErrorKind::RateLimited
            | ErrorKind::Server => true,
            _ => self.status() == Some(StatusCode::REQUEST_TIMEOUT),
        }
    }
}

/// Includes the complete message, because a program whose `main` returns the error prints this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Error");
        fields
            .field("kind", &self.0.kind)
            .field("message", &self.to_string());
        fields
            .field("attempts", &self.attempts())
            .field("source", &self.0.source)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.0.operation {
            write!(f, "{operation} failed: ")?;
        }
        f.write_str(&self.problem())?;
        if self.is_unsafe_to_repeat() {
            f.write_str("; the request may have been processed: check before you retry")?;
        }
        match (self.attempts(), self.waited().as_secs()) {
            (0 | 1, 0) => Ok(()),
            (0 | 1, waited) => write!(f, " (after {waited} s of waiting)"),
            (attempts, 0) => write!(f, " (after {attempts} attempts)"),
            (attempts, waited) => {
                write!(f, " (after {attempts} attempts and {waited} s of waiting)")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
