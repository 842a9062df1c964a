//! Rate-limit headers: wrong, missing or garbage (specification, section 8, says what is right).

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::answer::{Act, Answer};

/// What the specification promises on every response: limit, remaining and reset.
pub(super) const NAMES: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];

/// What is no number, in ways that a parser might take for one.
const GARBAGE: [HeaderValue; 3] = [
    HeaderValue::from_static("1e999"),
    HeaderValue::from_static("-1"),
    HeaderValue::from_static("tomorrow"),
];

/// What becomes of the `X-RateLimit-*` headers of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum RateFault {
    /// They are not there.
    Missing,
    /// They are no numbers.
    Garbage,
    /// They are numbers, but not the right ones; what is `None` stays as it is.
    Wrong {
        /// `X-RateLimit-Limit`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u64>,
        /// `X-RateLimit-Remaining`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remaining: Option<u64>,
        /// `X-RateLimit-Reset`, in seconds since the Unix epoch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reset: Option<u64>,
    },
}

impl Act for RateFault {
    fn act(&self, answer: &mut Answer) -> bool {
        let values = match *self {
            Self::Missing => {
                return NAMES.map(|name| answer.headers.remove(name).is_some()).contains(&true);
            }
            Self::Garbage => GARBAGE.map(Some),
            Self::Wrong { limit, remaining, reset } => {
                [limit, remaining, reset].map(|number| number.map(HeaderValue::from))
            }
        };
        let mut acted = false;
        for (name, value) in NAMES.into_iter().zip(values) {
            if let Some(value) = value {
                answer.headers.insert(name, value);
                acted = true;
            }
        }
        acted
    }
}
