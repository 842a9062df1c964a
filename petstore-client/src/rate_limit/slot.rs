//! The entry of a member in the ledger.

use std::hash::{BuildHasher as _, RandomState};

use serde::{Deserialize, Serialize};

use super::clock::LocalTime;
use super::outstanding::MAX_COUNT;

/// What one request adds to a turn. A turn loses a quarter with each window.
const TURN_UNIT: u64 = 1_024;

/// Identifies a process that shares a key's limits with others through a store.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct MemberId(pub(crate) u64);

impl MemberId {
    pub(crate) fn random() -> Self {
        Self(RandomState::new().hash_one("member"))
    }

    /// Returns the random number of the member.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The entry of a member in the ledger.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) id: MemberId,
    /// Requests reserved in advance, in flight, or answered and not reported yet.
    pub(super) reserved: u64,
    /// Calls that wait for a reservation.
    pub(super) want: u64,
    /// Requests granted in this window, and in the one before.
    pub(super) got: u64,
    pub(super) previous: u64,
    /// Whether calls waited when the last window ended.
    hungry: bool,
    /// Requests granted in all windows, older ones weighted less: the smallest turn goes first.
    pub(super) turn: u64,
    /// When the member is taken for dead.
    pub(super) until: LocalTime,
}

impl Slot {
    /// Creates the slot of a new member, whose turn comes after the given one.
    pub(super) fn new(id: MemberId, turn: u64) -> Self {
        // Its demand is not known yet.
        Self { id, turn, until: LocalTime(i64::MAX), hungry: true, ..Self::default() }
    }

    pub(super) fn is_plausible(&self) -> bool {
        let counts = [self.reserved, self.want, self.got, self.previous, self.turn / TURN_UNIT];
        counts.iter().all(|count| *count < MAX_COUNT)
    }

    /// Starts a new window. Returns whether the slot is still needed.
    pub(super) fn turn(&mut self) -> bool {
        (self.previous, self.hungry) = (self.got, self.want > 0);
        self.turn = self.turn / 4 * 3 + self.got.saturating_mul(TURN_UNIT);
        self.got = 0;
        self.reserved > 0 || self.hungry || self.previous > 0
    }

    /// Returns the expected demand of another member; `rest` is the part of the window that is left.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "rounds a part of a limit down; `as` saturates"
    )]
    pub(super) fn demand(&self, share: u64, rest: f64) -> u64 {
        let expected = match (self.want > 0 || self.hungry, self.previous) {
            (true, previous) => (2 * previous + 1).max(share),
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
