//! Trickle: so many bytes, then a pause, then so many bytes again.

use std::{
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    script::{Pace, times},
    seconds,
};

/// The first bytes go at once, and as many again after each pause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Trickle {
    pub(super) bytes: NonZeroU32,
    #[serde(rename = "everySeconds", with = "seconds")]
    pub(super) every: Duration,
}

impl Trickle {
    pub(super) fn allowed(&self, elapsed: Duration) -> u64 {
        let pauses = match self.every.as_nanos() {
            0 => return u64::MAX,
            every => u64::try_from(elapsed.as_nanos() / every).unwrap_or(u64::MAX),
        };
        pauses.saturating_add(1).saturating_mul(self.bytes.get().into())
    }

    pub(super) fn due(&self, sent: u64) -> Duration {
        times(self.every, sent / NonZeroU64::from(self.bytes))
    }
}

impl Act for Trickle {
    fn act(&self, answer: &mut Answer) -> bool {
        answer.script.pace(Pace::Trickle(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_lets_as_many_bytes_go_as_the_first_moment() {
        let every = Duration::from_secs(2);
        let pace = Trickle { bytes: NonZeroU32::new(10).unwrap(), every };
        let allowed = [0, 1_999, 2_000, 4_000].map(|ms| pace.allowed(Duration::from_millis(ms)));
        assert_eq!(allowed, [10, 10, 20, 30]);
        let due = [0, 9, 10, 19, 20].map(|sent| pace.due(sent).as_secs());
        assert_eq!(due, [0, 0, 2, 2, 4]);
    }

    #[test]
    fn the_longest_pause_and_none_at_all_do_no_harm() {
        let pace = |every| Trickle { bytes: NonZeroU32::MIN, every };
        assert_eq!(pace(Duration::MAX).due(u64::MAX).as_secs(), u64::MAX);
        assert_eq!(pace(Duration::ZERO).allowed(Duration::ZERO), u64::MAX);
    }
}
