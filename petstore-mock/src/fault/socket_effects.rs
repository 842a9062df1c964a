//! Effects on the socket while a response is sent: its speed and where it ends. The server applies
//! them.

use std::{num::NonZeroU32, time::Duration};

/// The socket effects of a response; none by default. Of several faults, the first one counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SocketPlan {
    pace: Option<Pace>,
    end: Option<EarlyEnd>,
}

impl SocketPlan {
    /// Sets where the response ends. Returns false if another fault already did.
    pub(super) fn set_end(&mut self, end: EarlyEnd) -> bool {
        self.end.replace(self.end.unwrap_or(end)).is_none()
    }

    /// Sets the speed. Returns false if another fault already did.
    pub(super) fn set_pace(&mut self, pace: Pace) -> bool {
        self.pace.replace(self.pace.unwrap_or(pace)).is_none()
    }

    pub(crate) fn pace(&self) -> Option<Pace> {
        self.pace
    }

    pub(crate) fn end(&self) -> Option<EarlyEnd> {
        self.end
    }
}

/// A premature end of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyEnd {
    /// The number of sent bytes of the body, which is longer; `None` before the status line.
    pub(crate) after_body_bytes: Option<u64>,
    pub(crate) how: EndMode,
}

/// How a response ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndMode {
    /// The connection is reset: the client sees ECONNRESET.
    Reset,
    /// The connection is closed: the client sees the end of the stream.
    Close,
    /// Nothing more is sent.
    Hang,
}

/// The speed of a response, including its head: a number of bytes at intervals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    bytes: NonZeroU32,
    every: Duration,
}

impl Pace {
    /// Sends the first `bytes` immediately, and as many again after each interval.
    pub(super) fn new(bytes: NonZeroU32, every: Duration) -> Self {
        Self { bytes, every }
    }

    /// Returns the number of bytes that may have been sent after `elapsed`.
    pub(crate) fn allowed(&self, elapsed: Duration) -> u64 {
        let steps = elapsed.as_nanos().checked_div(self.every.as_nanos());
        let steps = u64::try_from(steps.unwrap_or(u128::MAX)).unwrap_or(u64::MAX);
        steps
            .saturating_add(1)
            .saturating_mul(self.bytes.get().into())
    }

    /// Returns when the byte after the first `sent` bytes is due, as a time since the start.
    pub(crate) fn due(&self, sent: u64) -> Duration {
        let steps = sent / u64::from(self.bytes.get());
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.every.saturating_mul(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_lets_as_many_bytes_go_as_the_first_moment() {
        let every = Duration::from_secs(2);
        let pace = Pace::new(NonZeroU32::new(10).unwrap(), every);
        let allowed = [0, 1_999, 2_000, 4_000].map(|ms| pace.allowed(Duration::from_millis(ms)));
        assert_eq!(allowed, [10, 10, 20, 30]);
        let due = [0, 9, 10, 19, 20].map(|sent| pace.due(sent).as_secs());
        assert_eq!(due, [0, 0, 2, 2, 4]);
    }

    #[test]
    fn extreme_pauses_do_no_harm() {
        let pace = |every| Pace::new(NonZeroU32::MIN, every);
        assert_eq!(pace(Duration::MAX).due(u64::MAX), Duration::MAX);
        assert_eq!(pace(Duration::ZERO).allowed(Duration::ZERO), u64::MAX);
    }
}
