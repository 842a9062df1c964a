//! Effects on the socket while a response is sent: its speed and where it ends. The server applies
//! them.

use std::{num::NonZeroU32, time::Duration};

/// The socket effects of a response; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SocketPlan {
    pace: Option<Pace>,
    end: Option<EarlyEnd>,
}

impl SocketPlan {
    /// Sets where the response ends, unless another fault already did.
    pub(super) fn end_at(&mut self, at: CutPoint, how: EndMode) -> bool {
        let is_first = self.end.is_none();
        self.end.get_or_insert(EarlyEnd { at, how });
        is_first
    }

    /// Sets the speed, unless another fault already did.
    pub(super) fn set_pace(&mut self, pace: Pace) -> bool {
        let is_first = self.pace.is_none();
        self.pace.get_or_insert(pace);
        is_first
    }

    pub(crate) fn pace(&self) -> Option<Pace> {
        self.pace
    }

    pub(crate) fn end(&self) -> Option<EarlyEnd> {
        self.end
    }

    /// Whether the client never receives the whole response.
    pub(super) fn loses_response(&self) -> bool {
        self.end
            .is_some_and(|end| !matches!(end.how, EndMode::Stall(Some(_))))
    }
}

/// A premature end of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EarlyEnd {
    pub(crate) at: CutPoint,
    pub(crate) how: EndMode,
}

/// Where a response ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutPoint {
    /// Before the status line: no byte is sent.
    Start,
    /// After this many bytes of the body, which is longer.
    Body(u64),
}

/// How a response ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndMode {
    /// The connection is reset: the client sees ECONNRESET.
    Reset,
    /// The connection is closed: the client sees the end of the stream.
    Close,
    /// Nothing more is sent for this long on the mock's clock, or at all if `None`.
    Stall(Option<Duration>),
}

/// The speed of a response, including its head: a number of bytes per period, in equal steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace {
    bytes: NonZeroU32,
    steps: u64,
    step: Duration,
    /// Whether each step sends its bytes at its start, and not at its end.
    begins_at_once: bool,
}

impl Pace {
    /// Sends the first `bytes` immediately, and as many again after each pause.
    pub(super) fn trickle(bytes: NonZeroU32, every: Duration) -> Self {
        Self {
            bytes,
            steps: 1,
            step: every,
            begins_at_once: true,
        }
    }

    /// Sends this many bytes per second. Steps of 50 ms are small enough to look continuous, and
    /// large enough to be cheap.
    pub(super) fn bandwidth(bytes: NonZeroU32) -> Self {
        Self {
            bytes,
            steps: 20,
            step: Duration::from_millis(50),
            begins_at_once: false,
        }
    }

    /// Returns the number of bytes that may have been sent after `elapsed`.
    pub(crate) fn allowed(&self, elapsed: Duration) -> u64 {
        let steps = elapsed.as_nanos().checked_div(self.step.as_nanos());
        let steps = u64::try_from(steps.unwrap_or(u128::MAX)).unwrap_or(u64::MAX);
        let steps = steps.saturating_add(self.begins_at_once.into());
        steps.saturating_mul(self.bytes.get().into()) / self.steps
    }

    /// Returns when the byte after the first `sent` bytes is due, as a time since the start.
    pub(crate) fn due(&self, sent: u64) -> Duration {
        let bytes_and_steps = sent.saturating_add(1).saturating_mul(self.steps);
        let steps = bytes_and_steps.div_ceil(self.bytes.get().into());
        let steps = steps - u64::from(self.begins_at_once);
        let nanoseconds = self.step.as_nanos().saturating_mul(steps.into());
        let seconds = u64::try_from(nanoseconds / 1_000_000_000).unwrap_or(u64::MAX);
        let rest = u32::try_from(nanoseconds % 1_000_000_000).unwrap_or(0);
        Duration::new(seconds, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: u32) -> Pace {
        Pace::bandwidth(NonZeroU32::new(rate).unwrap())
    }

    #[test]
    fn a_second_lets_exactly_its_bytes_go() {
        for rate in [1, 3, 19, 20, 21, 1_000, u32::MAX] {
            for seconds in [1, 2, 60] {
                let allowed = pace(rate).allowed(Duration::from_secs(seconds));
                assert_eq!(allowed, seconds * u64::from(rate));
            }
            assert_eq!(pace(rate).allowed(Duration::ZERO), 0);
        }
    }

    #[test]
    fn a_byte_is_due_when_it_is_allowed_and_not_a_step_before() {
        for rate in [1, 3, 19, 20, 21, 1_000] {
            for sent in [0, 1, 7, 100] {
                let due = pace(rate).due(sent);
                assert!(pace(rate).allowed(due) > sent, "{rate} {sent}");
                assert!(
                    pace(rate).allowed(due.saturating_sub(pace(rate).step)) <= sent,
                    "{rate} {sent}"
                );
            }
        }
        assert!(pace(1).due(u64::MAX) > Duration::from_secs(86_400));
    }

    #[test]
    fn each_pause_lets_as_many_bytes_go_as_the_first_moment() {
        let every = Duration::from_secs(2);
        let pace = Pace::trickle(NonZeroU32::new(10).unwrap(), every);
        let allowed = [0, 1_999, 2_000, 4_000].map(|ms| pace.allowed(Duration::from_millis(ms)));
        assert_eq!(allowed, [10, 10, 20, 30]);
        let due = [0, 9, 10, 19, 20].map(|sent| pace.due(sent).as_secs());
        assert_eq!(due, [0, 0, 2, 2, 4]);
    }

    #[test]
    fn extreme_pauses_do_no_harm() {
        let pace = |every| Pace::trickle(NonZeroU32::MIN, every);
        assert_eq!(pace(Duration::MAX).due(u64::MAX).as_secs(), u64::MAX);
        assert_eq!(pace(Duration::ZERO).allowed(Duration::ZERO), u64::MAX);
    }
}
