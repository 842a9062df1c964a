//! An answer, as far as it tells of limits.

use std::time::Duration;

use super::time::Time;

/// What the service did with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was let in, whatever came of it then.
    LetIn,
    /// It was refused for a limit's sake, with the wait that was asked for, if any.
    Refused { wait: Option<Duration> },
    /// Nothing can be told of limits: a key that was not accepted.
    Unrelated,
}

/// The quota that an answer describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) reset: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) fate: Fate,
    pub(crate) rate: Option<Rate>,
    /// Jitter and back-off to add to a wait for a refusal that follows another.
    pub(crate) extra: Duration,
}
