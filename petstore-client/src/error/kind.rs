//! The kinds of failure.

use std::fmt;

use http::StatusCode;

/// A boxed error, used as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The kind of an [`Error`](crate::Error).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting of the client is invalid.
    Config,
    /// The request is invalid and was not sent: an argument is out of range, or a path or header is
    /// malformed.
    InvalidRequest,
    /// The API-key provider failed, or its key cannot be sent.
    Credentials,
    /// 401: the key is missing or invalid.
    Unauthorized,
    /// 404: the resource or the path does not exist.
    NotFound,
    /// 410: the service has removed the operation.
    Gone,
    /// Any other 4xx, a redirect, or a status that the specification does not list.
    Rejected,
    /// A 5xx.
    Server,
    /// A 429, or a rate limit or ban that lasts longer than the call may wait.
    RateLimited,
    /// The connection failed: refused, unknown host, no route.
    Connect,
    /// The TLS handshake failed. The client does not retry, because it would fail again.
    Tls,
    /// A time limit ran out; [`Error::timeout_kind`](crate::Error::timeout_kind) says which.
    Timeout,
    /// The connection broke before the response was complete.
    Interrupted,
    /// The body of a successful response is not what the operation returns.
    Decode,
    /// The response is larger than `max_response_bytes`.
    BodyTooLarge,
    /// The store of shared limits cannot be used. Calls go on without it, so only
    /// [`forget`](crate::operations::KeyLimits::forget) fails.
    Store,
    /// The link to the next page leaves the origin, or pages repeat.
    Paging,
    /// The client was closed ([`Client::close`](crate::Client::close)) before the call could send.
    Closed,
    /// The call runs outside a Tokio runtime, or its runtime was shut down.
    Runtime,
}

/// Writes the variant's name. The field `error.type` of a call's span has the same text, so that
/// both can be labels of metrics.
impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Writes the variant's name: a label for metrics.
impl fmt::Display for TimeoutKind {
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

    /// Returns whether a request may have been sent before a failure of this kind.
    pub(super) fn follows_sending(self) -> bool {
        match self {
            Self::Config
            | Self::InvalidRequest
            | Self::Credentials
            | Self::Connect
            | Self::Tls
            | Self::Store
            | Self::Closed => false,
            Self::Unauthorized
            | Self::NotFound
            | Self::Gone
            | Self::Rejected
            | Self::Server
            | Self::RateLimited
            | Self::Timeout
            | Self::Interrupted
            | Self::Decode
            | Self::BodyTooLarge
            | Self::Paging
            | Self::Runtime => true,
        }
    }
}

/// Returns whether the same request may succeed later: after a 5xx, 408 or 425.
pub(super) fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425)
}

/// The time limit that expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeoutKind {
    /// `connect_timeout`: TCP, proxy and TLS together.
    Connect,
    /// `attempt_timeout`: one attempt.
    Attempt,
    /// `read_timeout`: the time between two reads of a body.
    Read,
    /// `timeout`: the whole call.
    Call,
}

impl TimeoutKind {
    pub(super) fn problem(self) -> &'static str {
        match self {
            Self::Connect => "no connection",
            Self::Attempt => "no complete response",
            Self::Read => "no further data of the response",
            Self::Call => "the call took too long, with its waits",
        }
    }

    /// Returns what to do.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Connect => "check the base URL",
            Self::Attempt | Self::Read | Self::Call => "try again later",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_labels_for_metrics() {
        assert_eq!(ErrorKind::RateLimited.to_string(), "RateLimited");
        assert_eq!(TimeoutKind::Attempt.to_string(), "Attempt");
    }
}
