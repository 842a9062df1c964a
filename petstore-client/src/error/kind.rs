//! The kinds of failure.

use std::fmt;

use http::StatusCode;

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
    /// 404: the resource or the path does not exist.
    NotFound,
    /// 410: the operation has been removed.
    Gone,
    /// Any other 4xx, a redirect, or a status that the specification does not list.
    Rejected,
    /// A 5xx.
    Server,
    /// A 429, or a rate limit or a ban that blocks requests for longer than the call may wait.
    RateLimited,
    /// No connection: refused, unknown host, no route.
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
    /// The call is made outside a Tokio runtime, or its runtime was shut down.
    Runtime,
}

/// Writes the variant's name, as `error.type` of a call's span has it: a label for metrics.
impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl ErrorKind {
    /// Returns the kind of a response that is not a success.
    pub(super) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::GONE => Self::Gone,
            status if status.is_server_error() => Self::Server,
            _ => Self::Rejected,
        }
    }
}

/// Which time limit ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutKind {
    /// The one for connecting: TCP, proxy and TLS together.
    Connect,
    /// The one for an attempt.
    Attempt,
    /// The one between two reads of a response's body.
    Read,
    /// The one for the whole call.
    Call,
}

impl TimeoutKind {
    pub(super) fn advice(self) -> &'static str {
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
