//! Where the service's clock stands, as far as its `Date` headers tell.
//!
//! Each answer bounds the difference between the two clocks: the service wrote its `Date` after
//! the request was sent and before the answer came, and cut it to whole seconds. The bounds of all
//! answers are intersected. The local wall clock serves only until the first `Date`.

use super::time::{Local, Time};

const SECOND: i64 = 1_000_000;

/// The difference between the service's clock and the local one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServiceClock {
    /// The least and the most that the service's clock is ahead.
    least: i64,
    most: i64,
    guessed: bool,
}

impl ServiceClock {
    /// Starts with the wall clock's idea of the time.
    pub(crate) fn guess(now: Local, wall: Time) -> Self {
        let ahead = wall.0.saturating_sub(now.0);
        Self { least: ahead, most: ahead, guessed: true }
    }

    /// Takes in the `Date` of an answer; returns whether it tells of another time than was thought.
    pub(crate) fn observe(&mut self, sent: Local, received: Local, date: Time) -> bool {
        let least = date.0.saturating_sub(received.0);
        let most = date.0.saturating_add(SECOND).saturating_sub(sent.0);
        let (narrower_least, narrower_most) = (self.least.max(least), self.most.min(most));
        // The first word of the service, or its clock was set: start again.
        let anew = self.guessed || narrower_least > narrower_most;
        if anew {
            *self = Self { least, most, guessed: false };
        } else {
            (self.least, self.most) = (narrower_least, narrower_most);
        }
        anew
    }

    /// Where no answer has a `Date`: a refusal that names both the reset and the wait until it
    /// tells the time too.
    pub(crate) fn observe_refusal(&mut self, received: Local, reset: Time, wait: i64) {
        if self.guessed {
            let ahead = reset.0.saturating_sub(wait).saturating_sub(received.0);
            (self.least, self.most) = (ahead, ahead);
        }
    }

    /// Takes in that the service's clock was set, as another process has learned.
    pub(crate) fn move_by(&mut self, by: i64) {
        (self.least, self.most) = (self.least.saturating_add(by), self.most.saturating_add(by));
    }

    /// Takes over what another process has learned, unless this one has learned something.
    /// `bounds` are the least and the most that the service's clock is ahead of the local one.
    pub(crate) fn adopt(&mut self, (least, most): (i64, i64)) {
        if self.guessed {
            *self = Self { least, most, guessed: false };
        }
    }

    /// Returns the least and the most that the service's clock is ahead, where that is no guess.
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        (!self.guessed).then_some((self.least, self.most))
    }

    /// Returns the time that the service's clock shows at most.
    pub(crate) fn latest(&self, now: Local) -> Time {
        Time(now.0.saturating_add(self.most))
    }

    /// Returns the time that the service's clock shows at least.
    pub(crate) fn earliest(&self, now: Local) -> Time {
        Time(now.0.saturating_add(self.least))
    }

    /// Returns when the service's clock surely shows a time.
    pub(crate) fn surely(&self, at: Time) -> Local {
        Local(at.0.saturating_sub(self.least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrows_with_each_answer_and_always_holds_the_truth() {
        // The service is 1,000.3 s ahead; a round trip takes 80 ms, 30 ms of it on the way there.
        let ahead = 1_000_300_000;
        let mut clock = ServiceClock::guess(Local(0), Time(5));
        for step in 0..200 {
            let sent = step * 730_000;
            let written = sent + 30_000 + ahead;
            clock.observe(Local(sent), Local(sent + 80_000), Time(written / SECOND * SECOND));
            assert!(clock.least <= ahead && ahead <= clock.most, "{clock:?}");
        }
        assert!(clock.most - clock.least < 150_000, "{clock:?}");
    }

    #[test]
    fn starts_again_where_the_services_clock_was_set() {
        let mut clock = ServiceClock::guess(Local(0), Time(0));
        clock.observe(Local(0), Local(10), Time(100 * SECOND));
        clock.observe(Local(20), Local(30), Time(5_000 * SECOND));
        assert_eq!(clock.earliest(Local(30)), Time(5_000 * SECOND));
    }
}
