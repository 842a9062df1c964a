//! The service's clock, as responses show it.

use serde::{Deserialize, Serialize};

use super::instant::{LedgerTime, MINUTE, SECOND, ServiceTime};
use super::reading::ResponseHead;

/// The clocks of a service's backends may differ by this much.
const MAX_SKEW: i64 = 10 * SECOND;

/// How far the service's clock is ahead of the ledger's: no less than this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServiceClock {
    ahead: i64,
    source: Source,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Source {
    /// Nothing but the machine's wall clock, which may be wrong.
    #[default]
    Guess,
    Date,
    /// The wall clock: by it, a reset was less than a minute away.
    Wall,
    /// Neither fits the resets: the window of a minute is assumed to have begun when its reset was first
    /// seen. It ends within that minute, and then a probe is sent.
    Reset,
}

impl ServiceClock {
    /// Returns the earliest time that the service's clock may show.
    pub(crate) fn service_time(&self, at: LedgerTime) -> ServiceTime {
        ServiceTime(at.0.saturating_add(self.ahead))
    }

    /// Returns when the service's clock has certainly reached an instant.
    pub(crate) fn ledger_time(&self, at: ServiceTime) -> LedgerTime {
        LedgerTime(at.0.saturating_sub(self.ahead))
    }

    /// Returns whether a response has come.
    pub(crate) fn is_known(&self) -> bool {
        *self != Self::default()
    }

    /// Returns whether the time to a reset is known, and not only assumed to be a minute.
    pub(crate) fn knows_resets(&self) -> bool {
        self.source != Source::Reset
    }

    /// Records a response that came at an instant.
    pub(crate) fn observe(&mut self, head: &ResponseHead, at: LedgerTime) {
        let wall = head.wall.0.saturating_sub(at.0);
        let Some(date) = head.date else {
            return self.observe_without_date(head, wall, at);
        };
        let ahead = date.0.saturating_sub(at.0);
        // Some services take `Date` from another clock than the resets.
        let is_of_another_clock = head.reading.is_some()
            && !is_within_a_minute(head, ahead, at)
            && is_within_a_minute(head, wall, at);
        if is_of_another_clock {
            *self = Self {
                ahead: wall,
                source: Source::Wall,
            };
            return;
        }
        let fits_better =
            is_within_a_minute(head, ahead, at) && !is_within_a_minute(head, self.ahead, at);
        if self.source == Source::Wall && !fits_better {
            return;
        }
        // A response is on its way for a while, and `Date` is rounded down, so the latest one counts.
        // A response without a reading may come from a proxy.
        let is_earlier = self.ahead.saturating_sub(ahead) > MAX_SKEW;
        let was_set_back = is_earlier && head.reading.is_some();
        if self.source != Source::Date || ahead > self.ahead || was_set_back {
            *self = Self {
                ahead,
                source: Source::Date,
            };
        }
    }

    fn observe_without_date(&mut self, head: &ResponseHead, wall: i64, at: LedgerTime) {
        match self.source {
            Source::Date | Source::Wall => {}
            Source::Guess | Source::Reset => {
                if is_within_a_minute(head, wall, at) {
                    *self = Self {
                        ahead: wall,
                        source: Source::Wall,
                    };
                } else if let Some(reading) = head.reading {
                    if !is_within_a_minute(head, self.ahead, at) {
                        let ahead = reading.reset.0.saturating_sub(at.0).saturating_sub(MINUTE);
                        *self = Self {
                            ahead,
                            source: Source::Reset,
                        };
                    }
                } else if self.source == Source::Guess {
                    self.ahead = wall;
                }
            }
        }
    }
}

/// Returns whether the reset of a response is at most a minute away, by a clock that is ahead by this much.
fn is_within_a_minute(head: &ResponseHead, ahead: i64, at: LedgerTime) -> bool {
    head.reading.is_some_and(|reading| {
        let left = reading.reset.0.saturating_sub(at.0).saturating_sub(ahead);
        (0..=MINUTE + SECOND).contains(&left)
    })
}
