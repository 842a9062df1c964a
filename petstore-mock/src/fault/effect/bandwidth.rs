//! Bandwidth: so many bytes a second, as over a slow line.

use std::{num::NonZeroU32, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    script::{Pace, times},
};

/// Bytes go in steps of this: small enough to look like a line, large enough to cost little.
const STEP: Duration = Duration::from_millis(50);
const STEPS_PER_SECOND: u64 = 20;

/// No byte goes at once: the first step's worth is due after the first step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Bandwidth {
    pub(super) bytes_per_second: NonZeroU32,
}

impl Bandwidth {
    fn rate(self) -> u64 {
        self.bytes_per_second.get().into()
    }

    pub(super) fn allowed(self, elapsed: Duration) -> u64 {
        let steps = u64::try_from(elapsed.as_nanos() / STEP.as_nanos()).unwrap_or(u64::MAX);
        steps.saturating_mul(self.rate()) / STEPS_PER_SECOND
    }

    pub(super) fn due(self, sent: u64) -> Duration {
        // The first step after which one byte more is allowed.
        let steps = sent.saturating_add(1).saturating_mul(STEPS_PER_SECOND).div_ceil(self.rate());
        times(STEP, steps)
    }
}

impl Act for Bandwidth {
    fn act(&self, answer: &mut Answer) -> bool {
        answer.script.pace(Pace::Bandwidth(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: u32) -> Bandwidth {
        Bandwidth { bytes_per_second: NonZeroU32::new(rate).unwrap() }
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
                assert!(pace(rate).allowed(due.saturating_sub(STEP)) <= sent, "{rate} {sent}");
            }
        }
        assert!(pace(1).due(u64::MAX) > Duration::from_secs(86_400));
    }
}
