//! The kinds of failure, each with the words a person reads.

use std::time::Duration;

use super::response::ErrorResponse;
use crate::http::transport::TransportError;
use crate::rate_limit::Blocked;

/// Any error, as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Which time limit ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    Connect,
    Attempt,
    Call,
}

impl TimeLimit {
    fn advice(self) -> &'static str {
        match self {
            Self::Connect => "connecting took longer than `connect_timeout`; check the base URL",
            Self::Attempt => {
                "an attempt took longer than `attempt_timeout`; try again later, or allow more"
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
pub(crate) struct JsonProblem(pub(crate) String);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("the {setting} cannot be used: {problem}")]
    Config { setting: &'static str, problem: String },
    #[error("the request was not sent: {0}")]
    InvalidRequest(String),
    #[error("the provider returned no API key")]
    Credentials(#[source] BoxError),
    #[error("{0}")]
    Response(ErrorResponse),
    #[error("{blocked}{}", rate_limit_advice(*.allowed))]
    RateLimited {
        blocked: Blocked,
        /// The wait that the call's limits still allowed, where that is what ended the call.
        allowed: Option<Duration>,
        /// The 429, where one came: nothing was sent where none did.
        response: Option<ErrorResponse>,
    },
    #[error(
        "no connection to {origin}; check the base URL, the network, and that the service runs"
    )]
    Connect { origin: String, source: reqwest::Error },
    #[error(
        "no secure connection to {origin}: untrusted certificate, or not a TLS server; \
         check the base URL, or trust its authority with `root_certificates`"
    )]
    Tls { origin: String, source: reqwest::Error },
    #[error("timed out after {} s: {}", .after.as_secs_f64(), .limit.advice())]
    Timeout { limit: TimeLimit, after: Duration },
    #[error(
        "no whole response came: the connection broke, or the server does not speak HTTP; \
         check the base URL, or try again later"
    )]
    Interrupted(#[source] reqwest::Error),
    #[error("the response {} could not be read: {problem}", .status.as_u16())]
    Decode {
        status: http::StatusCode,
        path: String,
        problem: String,
        body: String,
        source: JsonProblem,
    },
    #[error("the response is larger than {limit} bytes; raise `max_response_bytes` to accept it")]
    BodyTooLarge { limit: usize, status: http::StatusCode },
    #[error("the pages cannot be followed further: {0}")]
    Paging(String),
    #[error("the call cannot run: {0}")]
    Runtime(&'static str),
}

impl Kind {
    /// Returns the kind of an attempt without a whole response. `deadline` is the limit that ended
    /// the attempt, if one did.
    pub(crate) fn of_attempt(
        error: TransportError,
        origin: impl FnOnce() -> String,
        connect_timeout: Duration,
        deadline: (TimeLimit, Duration),
    ) -> Self {
        match error {
            TransportError::Invalid(problem) => Self::InvalidRequest(problem),
            TransportError::Connect(source) => Self::Connect { origin: origin(), source },
            TransportError::Tls(source) => Self::Tls { origin: origin(), source },
            TransportError::ConnectTimeout => {
                Self::Timeout { limit: TimeLimit::Connect, after: connect_timeout }
            }
            TransportError::Interrupted(source) => Self::Interrupted(source),
            TransportError::Deadline { .. } => {
                Self::Timeout { limit: deadline.0, after: deadline.1 }
            }
            TransportError::BodyTooLarge { limit, status } => Self::BodyTooLarge { limit, status },
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
