//! The kinds of failure, each with the words a person reads.

use std::time::Duration;

use super::{RateLimited, ServiceFault};

/// Any error, as a source.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Which time limit ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Connect,
    Attempt,
    Call,
}

impl Limit {
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
pub(crate) struct Undecodable(pub(crate) String);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("the {part} cannot be used: {problem}")]
    Config { part: &'static str, problem: String },
    #[error("the request was not sent: {0}")]
    InvalidRequest(String),
    #[error("no API key could be had from the key provider")]
    Key(#[source] BoxError),
    #[error("{0}")]
    Service(ServiceFault),
    #[error("{limited}")]
    RateLimited {
        limited: RateLimited,
        /// The refusal itself, where one came: nothing was sent where none did.
        refusal: Option<ServiceFault>,
    },
    #[error(
        "no connection to {origin}; check the base URL, the network, and that the service runs"
    )]
    Connect { origin: String, source: reqwest::Error },
    #[error(
        "no secure connection to {origin}: it does not prove who it is, or does not speak TLS; \
         check the base URL, or trust its authority with `certificate_authorities`"
    )]
    Tls { origin: String, source: reqwest::Error },
    #[error("timed out after {} s: {}", .after.as_secs_f64(), .limit.advice())]
    Timeout { limit: Limit, after: Duration },
    #[error(
        "no whole response came: the connection broke, or what answered does not speak HTTP; \
         check the base URL, or try again later"
    )]
    Interrupted(#[source] reqwest::Error),
    #[error("the response {} could not be read: {problem}", .status.as_u16())]
    Decode {
        status: http::StatusCode,
        path: String,
        problem: String,
        body: String,
        source: Undecodable,
    },
    #[error("the response is larger than {limit} bytes; raise `max_response_bytes` to accept it")]
    BodyTooLarge { limit: usize, status: http::StatusCode },
    #[error("the pages cannot be followed further: {0}")]
    Paging(String),
}
