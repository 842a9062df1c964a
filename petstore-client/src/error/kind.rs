//! The kinds of failure, and the words a person reads of each.

use std::time::Duration;

use http::StatusCode;

use super::response::ErrorResponse;
use crate::rate_limit::Blocked;

/// Any error, as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What kind of failure an [`Error`](crate::Error) is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting of the client cannot be used.
    Config,
    /// The request cannot be sent as it is: an argument out of range, a bad path or header.
    InvalidRequest,
    /// The API-key provider failed.
    Credentials,
    /// 401: the key is missing or was not accepted.
    Unauthorized,
    /// 404: there is no such thing.
    NotFound,
    /// 410: the operation has been removed.
    Gone,
    /// Any other 4xx, a redirect, or a status that the specification does not know.
    Rejected,
    /// A 5xx.
    Server,
    /// A 429, or a rate limit or a ban that blocks requests for longer than the call may wait.
    RateLimited,
    /// No connection: refused, no such host, no route.
    Connect,
    /// The TLS handshake failed. It would fail again, so the request is not sent again. Only rustls
    /// tells it apart from [`Connect`](Self::Connect).
    Tls,
    /// A time limit ran out; [`Error::timeout`](crate::Error::timeout) says which.
    Timeout,
    /// The connection broke before the response was complete.
    Interrupted,
    /// A success whose body is not what the operation returns.
    Decode,
    /// A response larger than `max_response_bytes`.
    BodyTooLarge,
    /// A link to the next page that leaves the origin or repeats.
    Paging,
    /// There is no Tokio runtime, or it was shut down.
    Runtime,
}

/// Which time limit ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutKind {
    /// That of connecting: TCP, proxy and TLS together.
    Connect,
    /// That of one attempt.
    Attempt,
    /// That between two reads of a response's body.
    Read,
    /// That of the whole call.
    Call,
}

impl TimeoutKind {
    fn advice(self) -> &'static str {
        match self {
            Self::Connect => "connecting took longer than `connect_timeout`; check the base URL",
            Self::Attempt => {
                "an attempt took longer than `attempt_timeout`; try again later, or allow more"
            }
            Self::Read => {
                "nothing more of the response came within `read_timeout`; try again later, or \
                 allow more"
            }
            Self::Call => {
                "the call, with its waits, took longer than `timeout`; try again later, or allow more"
            }
        }
    }
}

/// What the JSON parser said, cut and made printable: it repeats values of any length.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct JsonProblem(pub(super) String);

/// Why a call failed, with what belongs to it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the {setting} cannot be used: {problem}")]
    Config { setting: &'static str, problem: String },
    #[error("the request was not sent: {0}")]
    InvalidRequest(String),
    #[error("the provider returned no API key")]
    Credentials(#[source] BoxError),
    #[error("{0}")]
    Response(Box<ErrorResponse>),
    #[error("{blocked}{}", rate_limit_advice(*.allowed))]
    RateLimited {
        blocked: Blocked,
        /// The wait that the call's limits still allowed, where that is what ended the call.
        allowed: Option<Duration>,
        /// The 429, where one came: nothing was sent where none did.
        response: Option<Box<ErrorResponse>>,
    },
    #[error(
        "no connection to {origin}; check the base URL, the network, and that the service runs"
    )]
    Connect { origin: String, source: BoxError },
    #[error(
        "no secure connection to {origin}: untrusted certificate, or not a TLS server; \
         check the base URL, or trust its authority with `root_certificates`"
    )]
    Tls { origin: String, source: BoxError },
    #[error("timed out after {} s: {}", .after.as_secs_f64(), .limit.advice())]
    Timeout {
        limit: TimeoutKind,
        after: Duration,
        /// Whether the request may have been sent.
        sent: bool,
    },
    #[error(
        "no whole response came: the connection broke, or the server does not speak HTTP; \
         check the base URL, or try again later"
    )]
    Interrupted(#[source] BoxError),
    #[error("the response {} could not be read: {problem}", .response.status.as_u16())]
    Decode { response: Box<ErrorResponse>, path: String, problem: String, source: JsonProblem },
    #[error("there is no response to read")]
    NoResponse,
    #[error("the response is larger than {limit} bytes; raise `max_response_bytes` to accept it")]
    BodyTooLarge { limit: usize, status: Option<StatusCode> },
    #[error("the pages cannot be followed further: {0}")]
    Paging(String),
    #[error("the call cannot run: {0}")]
    Runtime(&'static str),
}

impl Failure {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Config { .. } => ErrorKind::Config,
            Self::InvalidRequest(_) => ErrorKind::InvalidRequest,
            Self::Credentials(_) => ErrorKind::Credentials,
            Self::Response(response) => match response.status {
                StatusCode::UNAUTHORIZED => ErrorKind::Unauthorized,
                StatusCode::NOT_FOUND => ErrorKind::NotFound,
                StatusCode::GONE => ErrorKind::Gone,
                status if status.is_server_error() => ErrorKind::Server,
                _ => ErrorKind::Rejected,
            },
            Self::RateLimited { .. } => ErrorKind::RateLimited,
            Self::Connect { .. } => ErrorKind::Connect,
            Self::Tls { .. } => ErrorKind::Tls,
            Self::Timeout { .. } => ErrorKind::Timeout,
            Self::Interrupted(_) => ErrorKind::Interrupted,
            Self::Decode { .. } | Self::NoResponse => ErrorKind::Decode,
            Self::BodyTooLarge { .. } => ErrorKind::BodyTooLarge,
            Self::Paging(_) => ErrorKind::Paging,
            Self::Runtime(_) => ErrorKind::Runtime,
        }
    }

    /// Returns the response that ended the call, if one did.
    pub(crate) fn response(&self) -> Option<&ErrorResponse> {
        match self {
            Self::Response(response) | Self::Decode { response, .. } => Some(response),
            Self::RateLimited { response, .. } => response.as_deref(),
            _ => None,
        }
    }

    /// Returns whether the request cannot have reached the service.
    pub(crate) fn not_sent(&self) -> bool {
        match self {
            Self::Config { .. }
            | Self::InvalidRequest(_)
            | Self::Credentials(_)
            | Self::Connect { .. }
            | Self::Tls { .. } => true,
            Self::RateLimited { response, .. } => response.is_none(),
            Self::Timeout { sent, .. } => !sent,
            _ => false,
        }
    }
}

fn rate_limit_advice(allowed: Option<Duration>) -> String {
    match allowed {
        Some(allowed) => format!(
            ", which is longer than this call may still wait ({} s); \
             call again then, or allow a longer `max_wait` and `timeout`",
            (allowed.as_secs_f64() * 10.0).round() / 10.0
        ),
        None => "; call again then, or allow more attempts".to_owned(),
    }
}
