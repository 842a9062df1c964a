//! What is to happen on the socket while an answer is sent: at what pace its bytes go, and where they
//! end. Doing it is left to `accept`.

use std::time::Duration;

use super::{bandwidth::Bandwidth, trickle::Trickle};

/// The socket's part of an answer; nothing unusual unless set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Script {
    pub(crate) pace: Option<Pace>,
    pub(crate) end: Option<End>,
}

impl Script {
    /// Whether the answer is sent as any other.
    pub(crate) fn is_plain(&self) -> bool {
        self.pace.is_none() && self.end.is_none()
    }

    /// Sets where it ends, unless another fault did so before.
    pub(super) fn end(&mut self, at: At, how: How) -> bool {
        let free = self.end.is_none();
        if free {
            self.end = Some(End { at, how });
        }
        free
    }

    /// Sets its pace, unless another fault did so before.
    pub(super) fn pace(&mut self, pace: Pace) -> bool {
        let free = self.pace.is_none();
        if free {
            self.pace = Some(pace);
        }
        free
    }
}

/// How an answer ends before its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct End {
    pub(crate) at: At,
    pub(crate) how: How,
}

impl End {
    /// Whether the client never gets the whole answer.
    pub(crate) fn loses_the_answer(&self) -> bool {
        !matches!(self.how, How::Stall(Some(_)))
    }
}

/// Where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Before the status line: not one byte is sent.
    Start,
    /// After so many bytes of the body, which is longer than that.
    Body(u64),
}

/// What happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The connection is reset: the client sees ECONNRESET.
    Reset,
    /// The connection is closed: the client sees the end of the stream.
    Close,
    /// Nothing more is sent for this long, on the mock's clock; for ever where none is given.
    Stall(Option<Duration>),
}

/// How fast the bytes of an answer go, its head included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    Trickle(Trickle),
    Bandwidth(Bandwidth),
}

impl Pace {
    /// Returns how many bytes may have been sent this long after the first was due.
    pub(crate) fn allowed(&self, elapsed: Duration) -> u64 {
        match self {
            Self::Trickle(pace) => pace.allowed(elapsed),
            Self::Bandwidth(pace) => pace.allowed(elapsed),
        }
    }

    /// Returns how long after the first the byte is due that follows the first `sent`.
    pub(crate) fn due(&self, sent: u64) -> Duration {
        match self {
            Self::Trickle(pace) => pace.due(sent),
            Self::Bandwidth(pace) => pace.due(sent),
        }
    }
}

/// Multiplies a step of time, as far as a duration goes.
pub(super) fn times(step: Duration, count: u64) -> Duration {
    let nanoseconds = step.as_nanos().saturating_mul(u128::from(count));
    let seconds = u64::try_from(nanoseconds / 1_000_000_000).unwrap_or(u64::MAX);
    let rest = u32::try_from(nanoseconds % 1_000_000_000).unwrap_or(0);
    Duration::new(seconds, rest)
}
