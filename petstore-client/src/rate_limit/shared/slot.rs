//! The entry of a member in the record.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::outstanding::MAX_COUNT;

/// A member without an update for this long counts as dead.
pub(crate) const MEMBER_LEASE: Duration = Duration::from_secs(5);
/// What one request adds to the weighted use. Each new window reduces the weighted use by a
/// quarter.
const USE_UNIT: u64 = 1_024;

/// Identifies a process that shares a key's limits with others through a store.
///
/// ```
/// use std::path::PathBuf;
/// use petstore_client::rate_limit::MemberId;
///
/// /// Returns a file that shows that a member runs.
/// fn marker(member: MemberId) -> PathBuf {
///     format!("member-{:016x}", member.get()).into()
/// }
/// ```
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct MemberId(pub(crate) u64);

impl MemberId {
    /// Draws the number of a member. After a fork, both processes have the same random state.
    pub(crate) fn random() -> Self {
        let process = (std::process::id(), clock::wall());
        Self(RandomState::new().hash_one(process))
    }

    /// Returns the random number of the member.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The entry of a member in the record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Slot {
    id: MemberId,
    /// Requests reserved in advance, in flight, or answered and not reported yet.
    reserved: u64,
    /// Calls that wait for a reservation.
    want: u64,
    /// Requests granted in this window, and in the one before.
    got: u64,
    previous: u64,
    /// Whether calls waited when the last window ended.
    hungry: bool,
    /// Requests granted in all windows; older ones count less. The member with the lowest value
    /// goes first.
    weighted_use: u64,
    /// When the member counts as dead, unless it reports before.
    until: LocalTime,
    /// Whether the record was restored and the member has not reported to it since.
    awaits_report: bool,
}

impl Slot {
    /// Creates the slot of a new member.
    pub(crate) fn new(id: MemberId, weighted_use: u64) -> Self {
        // The demand of a new member is not known yet.
        Self {
            id,
            weighted_use,
            until: LocalTime(i64::MAX),
            hungry: true,
            ..Self::default()
        }
    }

    pub(crate) fn is_plausible(&self) -> bool {
        let counts = [
            self.reserved,
            self.want,
            self.got,
            self.previous,
            self.weighted_use / USE_UNIT,
        ];
        counts.iter().all(|count| *count < MAX_COUNT)
    }

    pub(crate) fn id(&self) -> MemberId {
        self.id
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    pub(crate) fn want(&self) -> u64 {
        self.want
    }

    pub(crate) fn got(&self) -> u64 {
        self.got
    }

    /// Returns how many requests the member got in the window before.
    pub(crate) fn previous(&self) -> u64 {
        self.previous
    }

    pub(crate) fn weighted_use(&self) -> u64 {
        self.weighted_use
    }

    pub(crate) fn is_alive(&self, now: LocalTime) -> bool {
        now < self.until
    }

    /// Returns whether the member has got requests in this window or the one before.
    pub(crate) fn has_used(&self) -> bool {
        self.got + self.previous > 0
    }

    /// Records a member's report: how many requests it has reserved, how many calls wait, and how
    /// many reservations it gives back.
    pub(crate) fn report(&mut self, reserved: u64, want: u64, given_back: u64, until: LocalTime) {
        (self.reserved, self.want, self.until) = (reserved, want, until);
        self.awaits_report = false;
        self.got = self.got.saturating_sub(given_back);
    }

    /// Records granted requests. After the grant of a probe, its call still counts as waiting,
    /// because the response opens the window.
    pub(crate) fn grant(&mut self, requests: u64, is_probe: bool) {
        self.reserved += requests;
        self.got += requests;
        if !is_probe {
            self.want = self.want.saturating_sub(requests);
        }
    }

    /// Records that reservations have ended, because their outcomes are known.
    pub(crate) fn end_requests(&mut self, requests: u64) {
        self.reserved = self.reserved.saturating_sub(requests);
    }

    /// Gives the member time to report to a record that was restored.
    pub(crate) fn await_report(&mut self, until: LocalTime) {
        (self.awaits_report, self.until) = (true, until);
    }

    pub(crate) fn awaits_report(&self) -> bool {
        self.awaits_report
    }

    /// Returns when the member counts as dead, unless it reports before.
    pub(crate) fn end(&self) -> LocalTime {
        self.until
    }

    /// Sets the requests that are reserved or in flight.
    pub(crate) fn set_reserved(&mut self, requests: u64) {
        self.reserved = requests;
    }

    /// Records that the member has not reported for too long. Returns how many requests it had
    /// reserved.
    pub(crate) fn silence(&mut self, now: LocalTime) -> u64 {
        (self.want, self.until) = (0, self.until.min(now));
        std::mem::take(&mut self.reserved)
    }

    /// Starts a new window. Returns whether the slot is still needed.
    pub(crate) fn open_window(&mut self) -> bool {
        (self.previous, self.hungry) = (self.got, self.want > 0);
        self.weighted_use = self.weighted_use / 4 * 3 + self.got.saturating_mul(USE_UNIT);
        self.got = 0;
        self.reserved > 0 || self.hungry || self.previous > 0
    }

    /// Returns the expected demand of another member. `equal_part` is the limit divided by the number
    /// of members, and `rest` the part of the window that is left.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "rounds a part of a limit down; `as` saturates"
    )]
    pub(crate) fn demand(&self, equal_part: u64, rest: f64) -> u64 {
        let expected = match (self.want > 0 || self.hungry, self.previous) {
            (true, previous) => (2 * previous + 1).max(equal_part),
            (false, 0) => 0,
            (false, previous) => 2 * previous + 1,
        };
        let missing = expected.saturating_sub(self.got);
        if rest == 0.0 {
            self.want
        } else if self.want > 0 {
            self.want.max(missing)
        } else {
            missing.min((expected as f64 * rest + 0.9) as u64)
        }
    }
}

/// For tests: sets values that result from reports over several windows.
#[cfg(test)]
impl Slot {
    pub(crate) fn set_use(&mut self, got: u64, previous: u64, weighted_use: u64) {
        (self.got, self.previous, self.weighted_use) = (got, previous, weighted_use);
    }

    pub(crate) fn set_want(&mut self, want: u64) {
        self.want = want;
    }

    pub(crate) fn set_end(&mut self, until: LocalTime) {
        self.until = until;
    }

    /// Returns the requests granted in this window and in the one before.
    pub(crate) fn parts(&self) -> (u64, u64) {
        (self.got, self.previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(want: u64, hungry: bool, previous: u64, got: u64) -> Slot {
        Slot {
            want,
            hungry,
            previous,
            got,
            ..Slot::default()
        }
    }

    #[test]
    fn weighted_use_ages_and_a_slot_that_nobody_needs_is_dropped() {
        let mut used = Slot {
            weighted_use: 8,
            ..slot(1, false, 0, 5)
        };
        assert!(used.open_window());
        assert_eq!((used.previous, used.hungry, used.got), (5, true, 0));
        assert_eq!(used.weighted_use, 8 / 4 * 3 + 5 * USE_UNIT);
        for (mut slot, reserved, is_needed) in [
            (slot(0, true, 9, 0), 0, false),
            (slot(0, true, 9, 0), 1, true),
            (slot(0, true, 9, 1), 0, true),
            (slot(1, true, 9, 0), 0, true),
        ] {
            slot.reserved = reserved;
            assert_eq!(slot.open_window(), is_needed, "{slot:?}");
        }
    }

    #[test]
    fn a_members_expected_demand_doubles_unless_it_had_to_wait() {
        for (slot, rest, demand) in [
            (Slot::new(MemberId(1), 0), 1.0, 50),
            (slot(0, false, 0, 0), 1.0, 0),
            (slot(0, false, 10, 0), 1.0, 21),
            (slot(0, false, 10, 0), 0.5, 11),
            (slot(0, false, 10, 15), 0.5, 6),
            (slot(0, false, 10, 0), 0.0, 0),
            (slot(0, true, 10, 0), 1.0, 50),
            (slot(0, true, 30, 0), 1.0, 61),
            (slot(1, false, 10, 0), 0.1, 50),
            (slot(60, false, 10, 0), 1.0, 60),
            (slot(3, true, 0, 49), 1.0, 3),
            (slot(3, true, 10, 0), 0.0, 3),
        ] {
            assert_eq!(slot.demand(50, rest), demand, "{slot:?} {rest}");
        }
    }
}
