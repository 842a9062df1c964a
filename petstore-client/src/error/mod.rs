//! Why a call failed: one opaque type with accessors and predicates over a private kind.

mod kind;
mod response;

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

pub(crate) use self::kind::Failure;
use self::kind::JsonProblem;
pub use self::kind::{BoxError, ErrorKind, TimeoutKind};
pub(crate) use self::response::{ErrorResponse, MAX_ERROR_BODY};
use self::response::{MAX_SHOWN, excerpt};
use crate::clock;
use crate::http::headers;
use crate::rate_limit::{Blocked, QuotaWindow};
use crate::redact::printable;

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a call has been through.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallStats {
    /// Requests that were sent, or tried.
    pub(crate) attempts: u32,
    /// Time spent waiting between them, or before the first.
    pub(crate) waited: Duration,
    /// Whether the service may have acted on one of them.
    pub(crate) may_have_acted: bool,
    /// Whether sending the request again does no more than sending it once.
    pub(crate) idempotent: bool,
}

/// Why a call failed.
///
/// [`kind`](Self::kind) says what happened; the `is_…` methods answer questions over several kinds.
/// `Display` is one sentence that names the operation and what to do about it, safe to print on a
/// terminal; [`source`](std::error::Error::source) is the cause below.
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
pub struct Error(Box<Inner>);

struct Inner {
    failure: Failure,
    operation: Option<Cow<'static, str>>,
    stats: CallStats,
}

impl Error {
    pub(crate) fn new(failure: Failure) -> Self {
        Self(Box::new(Inner { failure, operation: None, stats: CallStats::default() }))
    }

    pub(crate) fn config(setting: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::new(Failure::Config { setting, problem })
    }

    pub(crate) fn invalid(problem: impl Into<String>) -> Self {
        Self::new(Failure::InvalidRequest(problem.into()))
    }

    pub(crate) fn with_operation(mut self, operation: impl Into<Cow<'static, str>>) -> Self {
        self.0.operation = Some(operation.into());
        self
    }

    pub(crate) fn with_stats(mut self, stats: CallStats) -> Self {
        self.0.stats = stats;
        self
    }

    /// Says which wait the call's limits still allowed.
    pub(crate) fn with_allowed_wait(mut self, wait: Duration) -> Self {
        if let Failure::RateLimited { allowed, .. } = &mut self.0.failure {
            *allowed = Some(wait);
        }
        self
    }

    pub(crate) fn failure(&self) -> &Failure {
        &self.0.failure
    }

    fn response(&self) -> Option<&ErrorResponse> {
        self.0.failure.response()
    }

    /// Returns the status of the response, where one came.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match &self.0.failure {
            Failure::BodyTooLarge { status, .. } => *status,
            _ => self.response().map(|r| r.status),
        }
    }

    /// Returns the service's `code`: an open set of values, as it came.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.response()?.code.as_deref()
    }

    /// Returns the service's `message` as it came, which may hold control characters.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.response()?.message.as_deref()
    }

    /// Returns the body of the response, 64 KiB at most, as it came; where it repeats the key,
    /// that is taken out.
    #[must_use]
    pub fn body(&self) -> Option<&Bytes> {
        self.response().map(|r| &r.body)
    }

    /// Reads the body of the response as JSON: what a service says in an Error of another shape.
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
    /// [`ErrorKind::Decode`], where no response came, or its body is no JSON or not of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        let Some(response) = self.response() else {
            return Err(Self::new(Failure::NoResponse));
        };
        serde_json::from_slice(&response.body).map_err(|plain| {
            Self::new(Failure::decode::<T>(Box::new(response.clone()), &response.body, &plain))
        })
    }

    /// Returns the headers of the response, where a whole one came.
    #[must_use]
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.response().map(|r| &r.headers)
    }

    /// Returns the quota that the response describes (specification, section 8).
    #[must_use]
    pub fn quota(&self) -> Option<QuotaWindow> {
        QuotaWindow::read(self.headers()?)
    }

    /// Returns the service's own time when it answered (`Date`), where an answer came.
    #[must_use]
    pub fn date(&self) -> Option<SystemTime> {
        headers::date(self.headers()?)
    }

    /// Returns where in the JSON decoding failed, such as `[3].categoryId`, cut to 200 characters
    /// and made printable; `.` is the whole.
    #[must_use]
    pub fn decode_path(&self) -> Option<&str> {
        match &self.0.failure {
            Failure::Decode { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns what blocks requests with the key, where that ended the call.
    #[must_use]
    pub fn blocked(&self) -> Option<&Blocked> {
        match &self.0.failure {
            Failure::RateLimited { blocked, .. } => Some(blocked),
            _ => None,
        }
    }

    /// Returns the instant, on the service's clock, from which the request may be sent again: the
    /// end of the block, or what a 5xx or a 408 asks for (`Retry-After`).
    #[must_use]
    pub fn retry_at(&self) -> Option<SystemTime> {
        match self.blocked() {
            Some(blocked) => Some(blocked.until),
            None => self.date().unwrap_or_else(clock::wall).checked_add(self.retry_after()?),
        }
    }

    /// Returns how long it was until [`retry_at`](Self::retry_at) when the error arose. Unlike
    /// that, it does not depend on the local clock being right.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Some(blocked) = self.blocked() {
            return Some(blocked.remaining);
        }
        let response = self.response().filter(|response| asks_for_a_pause(response.status))?;
        let service_now = self.date().unwrap_or_else(clock::wall);
        headers::retry_after(&response.headers, service_now)
    }

    /// Returns the operation, by the specification's name (`listPets`) or as method and path.
    #[must_use]
    pub fn operation(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }

    /// Returns how many attempts were made; 0 where the call failed before the first.
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

    /// Returns whether the service may have acted on the request all the same: its answer was
    /// lost, or it failed while working on it. Where this is `false`, sending again cannot do the
    /// thing twice.
    #[must_use]
    pub fn may_have_been_processed(&self) -> bool {
        self.0.stats.may_have_acted
    }
}

impl Error {
    /// Returns what kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.failure.kind()
    }

    /// Returns which time limit ran out, where that ended the call.
    #[must_use]
    pub fn timeout(&self) -> Option<TimeoutKind> {
        match &self.0.failure {
            Failure::Timeout { limit, .. } => Some(*limit),
            _ => None,
        }
    }

    /// Returns whether the key is missing or was not accepted (401), or its provider had none.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        matches!(self.kind(), ErrorKind::Unauthorized | ErrorKind::Credentials)
    }

    /// Returns whether the service has no such thing (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Returns whether a rate limit or a ban ended the call: a 429, or a wait that is longer than
    /// the call allows. [`retry_at`](Self::retry_at) says when to call again.
    #[must_use]
    pub fn is_rate_limited(&self) -> bool {
        self.kind() == ErrorKind::RateLimited
    }

    /// Returns whether a time limit ran out, that of connecting included.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Returns whether no connection came about: [`ErrorKind::Connect`], [`ErrorKind::Tls`], or the
    /// time limit for connecting.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        matches!(self.kind(), ErrorKind::Connect | ErrorKind::Tls)
            || self.timeout() == Some(TimeoutKind::Connect)
    }

    /// Returns whether the same call may succeed later: no connection, a time limit, an
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

fn asks_for_a_pause(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.0.operation {
            write!(f, "{operation} failed: ")?;
        }
        self.0.failure.fmt(f)?;
        if self.may_have_been_processed() && !self.0.stats.idempotent {
            f.write_str("; the request may have been processed: look before you send it again")?;
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

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("failure", &self.0.failure)
            .field("operation", &self.0.operation)
            .field("stats", &self.0.stats)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.failure.source()
    }
}

impl Failure {
    /// Finds out where a body cannot be read as `T`. Only now is the path tracked: it costs time.
    pub(crate) fn decode<T: DeserializeOwned>(
        response: Box<ErrorResponse>,
        body: &[u8],
        plain: &serde_json::Error,
    ) -> Self {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let (path, said, is_data) = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
            Err(error) => {
                (error.path().to_string(), error.inner().to_string(), error.inner().is_data())
            }
            // What follows the value is wrong.
            Ok(_) => (".".to_owned(), plain.to_string(), plain.is_data()),
        };
        let (path, said) = (printable(&path, 200), printable(&said, MAX_SHOWN));
        let problem = if body.iter().all(u8::is_ascii_whitespace) {
            "its body is empty where JSON was expected; check the base URL".to_owned()
        } else if is_data {
            format!("at `{path}`: {said}")
        } else {
            format!("its body is not JSON ({said}): `{}`; check the base URL", excerpt(body, 60))
        };
        Self::Decode { response, path, problem, source: JsonProblem(said) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Pet;

    fn problem(body: &'static str) -> (String, String) {
        let plain = serde_json::from_str::<Vec<Pet>>(body).unwrap_err();
        let response = ErrorResponse::unread(StatusCode::OK, HeaderMap::new(), &body.into());
        match Failure::decode::<Vec<Pet>>(response, body.as_bytes(), &plain) {
            Failure::Decode { path, problem, .. } => (path, problem),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn says_where_in_the_json_decoding_failed() {
        let pets = r#"[{"id":1,"name":"a","categoryId":1},{"id":2,"name":"b","categoryId":"x"}]"#;
        let (path, message) = problem(pets);
        assert_eq!(path, "[1].categoryId");
        assert!(message.contains("expected i64"), "{message}");
    }

    #[test]
    fn shows_the_head_of_a_body_that_is_not_json() {
        let (_, message) = problem("<html>\u{1b}[0m</html>");
        assert!(message.contains("`<html>\\u{1b}[0m</html>`"), "{message}");
        assert!(problem("[] []").1.contains("not JSON (trailing characters"));
        assert!(problem("").1.contains("its body is empty"));
    }
}
